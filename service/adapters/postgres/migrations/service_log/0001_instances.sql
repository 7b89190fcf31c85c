-- Who serves the log. A row is one process under one name, which no process had before; it goes when the process ends.

CREATE TABLE instances (
    name     text COLLATE "C" PRIMARY KEY,
    url      text COLLATE "C" NOT NULL,  -- where other instances reach it; '' for a command
    version  text COLLATE "C" NOT NULL,  -- of the program
    is_home  boolean NOT NULL,           -- it has the repositories of the embedded code host
    renewals bigint NOT NULL,            -- grows while it is alive
    ended_at timestamptz                 -- when another found that it had ended; NULL while it is alive
);

-- The one that does what only one may do; '' while there is none.

CREATE TABLE leader (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    name text COLLATE "C" NOT NULL
);

INSERT INTO leader (name) VALUES ('');
