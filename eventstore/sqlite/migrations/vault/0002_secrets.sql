-- Secrets that were given to the service to use, such as tokens: each sealed under the key of the subject `secret-NAME`.

CREATE TABLE secrets (
    name       TEXT NOT NULL PRIMARY KEY,
    sealed     BLOB NOT NULL,
    created_at TEXT NOT NULL  -- UTC
) STRICT, WITHOUT ROWID;
