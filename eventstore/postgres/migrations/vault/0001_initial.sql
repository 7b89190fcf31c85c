-- The data keys of subjects, and the tombstones of those that were erased.

CREATE TABLE keys (
    subject    text COLLATE "C" PRIMARY KEY,  -- a stream's name
    key_id     bytea,                         -- stands in each sealed text, to see under which key it was sealed
    key        bytea,                         -- AES-256; NULL once erased
    created_at text COLLATE "C" NOT NULL,     -- UTC; of the tombstone, when there never was a key
    erased_at  text COLLATE "C",              -- UTC; set for good: no other key is ever made for this subject
    CHECK ((key IS NULL) = (erased_at IS NOT NULL)),
    CHECK ((key IS NULL) = (key_id IS NULL))
);

-- Secrets that were given to the service to use, such as tokens: each sealed under the key of the subject `secret-NAME`.

CREATE TABLE secrets (
    name       text COLLATE "C" PRIMARY KEY,
    sealed     bytea NOT NULL,
    created_at text COLLATE "C" NOT NULL  -- UTC
);

-- Grows with each erasure, so that every instance drops the keys that it knows.

CREATE TABLE erasures (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    generation bigint NOT NULL
);

INSERT INTO erasures (generation) VALUES (1);
