-- Invoices with their lines, reminders and refunds; the same text for SQLite and PostgreSQL.
CREATE TABLE invoices (
  id             text PRIMARY KEY,
  amount_cents   integer NOT NULL,
  status         text NOT NULL CHECK (status IN ('draft', 'approved', 'paid', 'overdue')),
  due_on         date NOT NULL,
  customer_email text
);
CREATE TABLE invoice_lines (
  invoice_id   text NOT NULL REFERENCES invoices,
  sku          text NOT NULL,
  quantity     integer NOT NULL,
  amount_cents integer NOT NULL,
  PRIMARY KEY (invoice_id, sku)
);
CREATE TABLE reminders (
  invoice_id text NOT NULL REFERENCES invoices,
  sent_at    timestamptz NOT NULL
);
CREATE TABLE refunds (
  id           integer PRIMARY KEY,
  invoice_id   text NOT NULL REFERENCES invoices,
  amount_cents integer NOT NULL CHECK (amount_cents > 0),
  reason       text
);
