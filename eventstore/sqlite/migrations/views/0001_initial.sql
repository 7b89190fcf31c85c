-- What the views keep about themselves; the tables that one queries are the projections' own.

CREATE TABLE checkpoints (
    name     TEXT NOT NULL PRIMARY KEY,  -- the projection's, with its version
    position INTEGER NOT NULL,           -- of the last event it has applied
    hash     BLOB,                       -- of that event: a log that is not the one it was made from is noticed
    tables   TEXT NOT NULL               -- the script that made its tables
) STRICT;

CREATE TABLE objects (
    projection TEXT NOT NULL,
    name       TEXT NOT NULL,            -- of a table, index, view or trigger that its script made
    PRIMARY KEY (projection, name)
) STRICT;
