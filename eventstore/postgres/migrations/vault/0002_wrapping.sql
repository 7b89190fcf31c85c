-- oldest: 1
-- A vault may be wrapped: each key is then encrypted under a wrapping key, which is in no table. The first wrapping key
-- makes it so, and a program that does not know this step is refused from then on (wrapping/rotation.py).

CREATE TABLE wrapping_keys (
    id           text COLLATE "C" PRIMARY KEY,  -- the beginning of its SHA-256; the key itself is in files elsewhere
    state        text COLLATE "C" NOT NULL CHECK (state IN ('next', 'current', 'replaced', 'retired', 'destroyed')),
    created_at   text COLLATE "C" NOT NULL,     -- UTC, as the others
    replaced_at  text COLLATE "C",              -- since then no key is wrapped under it any more
    retired_at   text COLLATE "C",              -- since then no living key is wrapped under it
    destroyed_at text COLLATE "C",              -- since then every instance deletes its file
    copied_at    text COLLATE "C"               -- when an operator has copied it last
);

CREATE UNIQUE INDEX one_wrapping_key_of_a_kind ON wrapping_keys (state) WHERE state IN ('next', 'current');

-- Which instances have a wrapping key in their files.

CREATE TABLE wrapping_key_holders (
    id       text COLLATE "C" NOT NULL,
    instance text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, instance)
);

ALTER TABLE keys ADD COLUMN wrapped_under text COLLATE "C";  -- a wrapping key's id; NULL: `key` is the key itself
