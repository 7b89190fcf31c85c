-- oldest: 1
-- Events are only added, where the log ends is only moved on, and the steps of the schema are the owner's: for every role
-- but the owner, whatever it was given (roles/log.sql).

DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE %s ON %s FROM %s', taken.rights, relation.oid::regclass,
                CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END)
        FROM (VALUES ('events', 'UPDATE, DELETE, TRUNCATE, TRIGGER'), ('head', 'INSERT, DELETE, TRUNCATE, TRIGGER'),
                ('log_schema', 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')) AS taken (name, rights)
        JOIN pg_class AS relation ON relation.oid = taken.name::regclass
        CROSS JOIN aclexplode(relation.relacl) AS given
        WHERE given.grantee <> relation.relowner
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
