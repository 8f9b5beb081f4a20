INSERT INTO sales (month, channel, orders, revenue_cents) VALUES
  ('2026-01', 'shop', 120, 480000),
  ('2026-01', 'web',   80, 640050),
  ('2026-02', 'shop', 130, 510000),
  ('2026-02', 'web',   95, 722000),
  ('2026-03', 'shop', 110, 450000),
  ('2026-03', 'web',  140, 998000);
