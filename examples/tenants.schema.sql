-- PostgreSQL. The role is of the whole server: it is made if it is not there.
DO $$ BEGIN
  CREATE ROLE tenants_reader NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
CREATE TABLE notes (
  id     integer PRIMARY KEY,
  tenant text NOT NULL,
  text   text NOT NULL
);
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON notes TO tenants_reader
  USING (tenant = current_setting('app.tenant'))
  WITH CHECK (tenant = current_setting('app.tenant'));
GRANT SELECT, INSERT ON notes TO tenants_reader;
INSERT INTO notes (id, tenant, text) VALUES
  (1, 'acme',   'The roof leaks.'),
  (2, 'globex', 'Order more tea.'),
  (3, 'acme',   'The roof is mended.');
