INSERT INTO articles (sku, name, price_cents, stock) VALUES
  ('CUP-1', 'Cup, blue',  900, 12),
  ('CUP-2', 'Cup, white', 900,  0),
  ('KET-1', 'Kettle',   19000,  3),
  ('POT-1', 'Teapot',    5000,  8),
  ('TEA-1', 'Earl Grey',  650, 40);
