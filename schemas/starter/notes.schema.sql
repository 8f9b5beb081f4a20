CREATE TABLE notes (
  id         integer PRIMARY KEY,
  title      text NOT NULL,
  body       text,
  changed_on text NOT NULL
);
