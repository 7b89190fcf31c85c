-- What instances count together for limits, and forget soon. An unlogged table is empty after a crash of the server, and
-- on a standby that takes over: no window is longer than some minutes. Its commits wait for no disk.

CREATE UNLOGGED TABLE brief_counts (
    name    text COLLATE "C" PRIMARY KEY,     -- of a window: its scope, and who is counted
    times   bigint[] NOT NULL DEFAULT '{}',   -- when something was counted, in milliseconds since 1970, oldest first
    counts  integer[] NOT NULL DEFAULT '{}',  -- how many at each of these times
    ends_at bigint NOT NULL DEFAULT 0         -- when the last of them leaves the window
) WITH (fillfactor = 50);

-- Counts one in each of the windows of each thing, in the order of the things, where all its windows have room; in none
-- otherwise. Returns whether each was counted; and for each window how many it has now, and the milliseconds until one
-- more fits, or until its oldest leaves. All by the clock of the server.
--
-- names, limits, milliseconds: the windows, in the order of their names
-- firsts, seconds: for each thing the places of its windows among these, from 1; 0 in seconds: it has one window

CREATE FUNCTION count_briefly(
    names text[], limits integer[], milliseconds bigint[], firsts integer[], seconds integer[],
    OUT is_counted boolean[], OUT used integer[], OUT resets bigint[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    at bigint;
    added integer[] := array_fill(0, ARRAY[cardinality(names)]);
    one integer;
    other integer;
    locked integer;
BEGIN
    LOOP
        INSERT INTO brief_counts (name) SELECT unnest(names) ON CONFLICT DO NOTHING;
        PERFORM FROM brief_counts WHERE name = ANY(names) ORDER BY name FOR UPDATE;
        GET DIAGNOSTICS locked = ROW_COUNT;
        EXIT WHEN locked = cardinality(names);  -- else one was cleared away in between
    END LOOP;
    at := floor(extract(epoch FROM clock_timestamp()) * 1000);
    SELECT array_agg(coalesce((
            SELECT sum(count) FROM unnest(row.times, row.counts) AS entry (time, count)
            WHERE entry.time > at - wanted.length
        ), 0) ORDER BY wanted.place)
        INTO used
        FROM unnest(names, milliseconds) WITH ORDINALITY AS wanted (name, length, place)
        JOIN brief_counts AS row ON row.name = wanted.name;
    is_counted := array_fill(false, ARRAY[cardinality(firsts)]);
    FOR thing IN 1 .. cardinality(firsts) LOOP
        one := firsts[thing];
        other := seconds[thing];
        IF used[one] < limits[one] AND (other = 0 OR used[other] < limits[other]) THEN
            is_counted[thing] := true;
            used[one] := used[one] + 1;
            added[one] := added[one] + 1;
            IF other > 0 THEN
                used[other] := used[other] + 1;
                added[other] := added[other] + 1;
            END IF;
        END IF;
    END LOOP;
    -- Past 300 entries, times are rounded up to a six hundredth of the window, so that a row stays small.
    UPDATE brief_counts AS row SET times = kept.times, counts = kept.counts, ends_at = at + kept.length
        FROM (
            SELECT wanted.name, wanted.length, array_agg(entry.time ORDER BY entry.time) AS times,
                array_agg(entry.count ORDER BY entry.time) AS counts
            FROM unnest(names, milliseconds, added) AS wanted (name, length, added)
            JOIN brief_counts AS before ON before.name = wanted.name
            CROSS JOIN LATERAL (
                SELECT time, sum(count)::integer AS count FROM (
                    SELECT time, count FROM unnest(before.times, before.counts) AS entry (time, count)
                    WHERE time > at - wanted.length
                    UNION ALL
                    SELECT CASE WHEN cardinality(before.times) < 300 THEN at
                        ELSE (at / greatest(wanted.length / 600, 1) + 1) * greatest(wanted.length / 600, 1) END,
                        wanted.added
                ) AS every GROUP BY time
            ) AS entry
            WHERE wanted.added > 0
            GROUP BY wanted.name, wanted.length
        ) AS kept
        WHERE row.name = kept.name;
    SELECT array_agg(coalesce((
            SELECT min(time) + wanted.length - at FROM (
                SELECT time, sum(count) OVER (ORDER BY time) AS so_far
                FROM unnest(row.times, row.counts) AS entry (time, count) WHERE time > at - wanted.length
            ) AS entry
            WHERE so_far > used[wanted.place] - wanted.most
        ), wanted.length) ORDER BY wanted.place)
        INTO resets
        FROM unnest(names, limits, milliseconds) WITH ORDINALITY AS wanted (name, most, length, place)
        JOIN brief_counts AS row ON row.name = wanted.name;
END $$;

-- What was used and may not be used again, such as a proof of work. Not unlogged: none is good twice after a crash.

CREATE TABLE used_once (
    digest  bytea PRIMARY KEY,
    ends_at timestamptz NOT NULL  -- from then on it is not good any more anyway
);

-- Reader tokens of each site, by the hour: whether a site is asked far more than usual is seen by these.

CREATE TABLE reader_tokens (
    project_id text COLLATE "C",
    hour       bigint,            -- since 1970
    count      bigint NOT NULL,
    PRIMARY KEY (project_id, hour)
);
