-- oldest: 1
--
-- Why nothing may be appended: an instance found that the log lost events. Each writer looks at it with the row it
-- changes, so all of them stop at once.

ALTER TABLE head ADD COLUMN held text COLLATE "C";
