-- oldest: 1
-- The statistics of a column are samples of its values, in a table of the server's own. A key has none to be in.

ALTER TABLE keys ALTER COLUMN key TYPE bytea;  -- the type that it has: this drops the statistics that there are
ALTER TABLE keys ALTER COLUMN key SET STATISTICS 0;

ALTER TABLE wrapping_keys ADD COLUMN rewritten_at text COLLATE "C";  -- UTC; when the table of keys was rewritten after the
                                                                     -- last key that was not wrapped
