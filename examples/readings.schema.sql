-- SQLite.
CREATE TABLE stations (
  name    text PRIMARY KEY,
  picture blob NOT NULL
);
CREATE TABLE readings (
  station  text NOT NULL REFERENCES stations,
  at       timestamptz NOT NULL,
  celsius  double precision NOT NULL,
  observer text,
  PRIMARY KEY (station, at)
);
