CREATE TABLE articles (
  sku         text PRIMARY KEY,
  name        text NOT NULL,
  price_cents integer NOT NULL,
  stock       integer NOT NULL
);
