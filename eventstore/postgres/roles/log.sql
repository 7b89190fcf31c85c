-- Roles of a log. An administrator runs this once, in the log's database:
--     psql -d DATABASE -v ON_ERROR_STOP=1 -f roles.sql
-- It can be repeated, and takes over tables that another role has made. Then give each role a password (\password ROLE,
-- which shows none to the server's log), and let the owner make the tables: docsmith store migrate.
--
--     {owner}    makes and changes the tables; no service signs in as it
--     {service}    reads and appends; it can neither change nor delete an event
--     {reader}    only reads, for audits

BEGIN;

DO $$
DECLARE
    wanted text;
    given text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['{owner}', '{service}', '{reader}'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', wanted);
        END IF;
    END LOOP;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN  -- as on a managed server
        GRANT {owner}, {service} TO CURRENT_USER;
    END IF;
    FOREACH given IN ARRAY ARRAY[
        'REVOKE ALL ON DATABASE %1$I FROM PUBLIC, {service}, {reader}',
        'GRANT CONNECT ON DATABASE %1$I TO {owner}, {service}, {reader}'
    ] LOOP
        EXECUTE format(given, current_database());
    END LOOP;
END $$;

CREATE SCHEMA IF NOT EXISTS {schema};
ALTER SCHEMA {schema} OWNER TO {owner};
REVOKE ALL ON SCHEMA {schema} FROM PUBLIC, {service}, {reader};
GRANT USAGE ON SCHEMA {schema} TO {service}, {reader};

-- What is there already becomes the owner's.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT format('ALTER TABLE %s OWNER TO {owner}', oid::regclass) FROM pg_class
        WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'p')
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO {owner}', oid::regprocedure) FROM pg_proc
        WHERE pronamespace = '{schema}'::regnamespace
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;

-- What each may do with the tables: those there are, and those that the owner will make. TRUNCATE is for no one.
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC, {service}, {reader};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {service};
GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {reader};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {service};
ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {schema}
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {service};
ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {schema} GRANT SELECT ON TABLES TO {reader};
ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {schema} GRANT USAGE ON SEQUENCES TO {service};

-- Events are only added, where the log ends is only moved on, and the steps of the schema are the owner's. The migration
-- that makes these tables does the same (migrations/log/0002_rights.sql).
DO $$
BEGIN
    IF to_regclass('{schema}.events') IS NOT NULL THEN
        REVOKE UPDATE, DELETE ON {schema}.events FROM {service};
        REVOKE INSERT, DELETE ON {schema}.head FROM {service};
        REVOKE INSERT, UPDATE, DELETE ON {schema}.log_schema FROM {service};
    END IF;
END $$;

COMMIT;
