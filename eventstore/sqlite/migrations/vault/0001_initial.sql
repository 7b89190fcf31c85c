-- The data keys of subjects, and the tombstones of those that were erased.

CREATE TABLE keys (
    subject    TEXT NOT NULL PRIMARY KEY,  -- a stream's name
    key_id     BLOB,                       -- stands in each sealed text, so that an old key's is told from a broken one
    key        BLOB,                       -- AES-256; NULL once erased
    created_at TEXT NOT NULL,              -- UTC; of the tombstone, when there never was a key
    erased_at  TEXT,                       -- UTC; set for good: no other key is ever made for this subject
    CHECK ((key IS NULL) = (erased_at IS NOT NULL)),
    CHECK ((key IS NULL) = (key_id IS NULL))
) STRICT, WITHOUT ROWID;
