CREATE TABLE people (
  id           integer PRIMARY KEY,
  name         text NOT NULL,
  email        text NOT NULL,
  holidays     integer NOT NULL,
  salary_cents integer,
  notes        text,
  national_id  text NOT NULL,
  phone        text,
  city         text NOT NULL,
  password     text
);
