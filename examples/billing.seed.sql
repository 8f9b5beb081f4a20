-- Four invoices, one in each status.
INSERT INTO invoices (id, amount_cents, status, due_on, customer_email) VALUES
  ('INV-1', 125000, 'paid',     '2026-01-31', 'ann@example.com'),
  ('INV-2',  48050, 'draft',    '2026-03-15', 'bob@example.com'),
  ('INV-3',  99900, 'overdue',  '2026-02-01', 'carla@example.com'),
  ('INV-4',   7500, 'approved', '2026-03-31', NULL);
INSERT INTO invoice_lines (invoice_id, sku, quantity, amount_cents) VALUES
  ('INV-1', 'CONSULTING', 10, 100000),
  ('INV-1', 'TRAVEL',      1,  25000),
  ('INV-2', 'LICENSE',     1,  48050),
  ('INV-3', 'SUPPORT',     3,  99900);
