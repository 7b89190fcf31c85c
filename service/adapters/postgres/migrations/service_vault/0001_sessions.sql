-- The browsers in which people are signed in. Whether a session is still open, the log says. Without these rows everyone
-- signs in again.

CREATE TABLE sessions (
    id        text COLLATE "C" PRIMARY KEY,
    digest    text COLLATE "C" NOT NULL UNIQUE,  -- SHA-256 of the cookie's secret, in hex
    person_id text COLLATE "C" NOT NULL,
    method    text COLLATE "C" NOT NULL,
    browser   text NOT NULL,
    address   text NOT NULL,
    began_at  timestamptz NOT NULL,
    used_at   timestamptz NOT NULL               -- a minute or so late
);

CREATE INDEX sessions_by_person ON sessions (person_id);
