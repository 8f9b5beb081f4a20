INSERT INTO people (id, name, email, holidays, salary_cents, notes, national_id, phone, city) VALUES
  (1, 'Ann', 'ann@corp.example',  24, 6400000, 'Asked us to update 078-05-1120 in her file.', 'NI-553311', '+44 20 7946 0000', 'London'),
  (2, 'Bob', 'bob@corp.example',   3, 5200000, NULL, 'NI-774422', NULL, 'Leeds');
