-- The log. One row for each event, for good: nothing updates or deletes a row of it.
--
-- Texts are JSON and ISO 8601, stored byte for byte as a SQLite log has them, so that both have the same hashes:
--   SELECT position, recorded_at, type, data FROM events WHERE stream = 'job-1' ORDER BY stream_version;

CREATE TABLE events (
    position       bigint PRIMARY KEY,           -- the place in the log: 1, 2, 3, ... without gaps
    stream         text COLLATE "C" NOT NULL,    -- '<category>-<id>'
    stream_version bigint NOT NULL,              -- the place in the stream: 1, 2, 3, ... without gaps
    id             text COLLATE "C" NOT NULL,    -- the event's identity: the same event is never stored twice
    type           text COLLATE "C" NOT NULL,    -- the tag of its shape
    schema_version bigint NOT NULL,              -- the version of that shape
    recorded_at    text COLLATE "C" NOT NULL,    -- UTC
    metadata       text COLLATE "C" NOT NULL,    -- JSON object: actor, correlation_id, causation; defaults left out
    data           text COLLATE "C" NOT NULL,    -- JSON object: its fields, but for the personal ones
    sealed         bytea,                        -- its personal fields, encrypted under the stream's key; or NULL
    hash           bytea NOT NULL,               -- SHA-256 over the hash before and everything above
    category       text COLLATE "C" NOT NULL GENERATED ALWAYS AS (split_part(stream, '-', 1)) STORED
);

CREATE UNIQUE INDEX events_by_stream ON events (stream, stream_version);

CREATE UNIQUE INDEX events_by_id ON events (id);

CREATE INDEX events_by_category ON events (category, position);

-- Where the log ends. Each append updates this row, so that the order of appends is that of the positions.

CREATE TABLE head (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    position    bigint NOT NULL,
    hash        bytea NOT NULL,
    recorded_at text COLLATE "C" NOT NULL
);

INSERT INTO head (position, hash, recorded_at) VALUES (0, decode(repeat('00', 32), 'hex'), '');

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'events are stored for good: % is refused', lower(TG_OP) USING ERRCODE = '42501'; END $$;

CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
