CREATE TABLE sales (
  month         text NOT NULL,
  channel       text NOT NULL,
  orders        integer NOT NULL,
  revenue_cents integer NOT NULL,
  PRIMARY KEY (month, channel)
);
