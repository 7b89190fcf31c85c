-- The log. One row for each event, for good: nothing updates or deletes a row of it.
--
-- Texts are JSON and ISO 8601, so that any SQLite shell can read the log:
--   SELECT position, recorded_at, type, data FROM events WHERE stream = 'job-1' ORDER BY stream_version;

CREATE TABLE events (
    position       INTEGER PRIMARY KEY,  -- the place in the log: 1, 2, 3, ... without gaps
    stream         TEXT NOT NULL,        -- '<category>-<id>'
    stream_version INTEGER NOT NULL,     -- the place in the stream: 1, 2, 3, ... without gaps
    id             TEXT NOT NULL,        -- the event's identity: the same event is never stored twice
    type           TEXT NOT NULL,        -- the tag of its shape
    schema_version INTEGER NOT NULL,     -- the version of that shape
    recorded_at    TEXT NOT NULL,        -- UTC
    metadata       TEXT NOT NULL,        -- JSON object: actor, correlation_id, causation; defaults left out
    data           TEXT NOT NULL,        -- JSON object: its fields, but for the personal ones
    sealed         BLOB,                 -- its personal fields, encrypted under the stream's key (vault.py); or NULL
    hash           BLOB NOT NULL,        -- SHA-256 over the hash before and everything above (chain.py)
    category       TEXT NOT NULL GENERATED ALWAYS AS (substr(stream, 1, instr(stream || '-', '-') - 1)) VIRTUAL
) STRICT;

CREATE UNIQUE INDEX events_by_stream ON events (stream, stream_version);

CREATE UNIQUE INDEX events_by_id ON events (id);

-- An index entry ends with the row's position, so one category is read in the order of the log.
CREATE INDEX events_by_category ON events (category);
