INSERT INTO notes (id, title, body, changed_on) VALUES
  (1, 'Opening hours', 'Monday to Friday, 9 to 17.', '2026-01-07'),
  (2, 'Holidays', 'Closed on the first of May.', '2026-02-11');
