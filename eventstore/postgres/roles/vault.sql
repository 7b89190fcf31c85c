-- The role of a vault. An administrator runs this once, in the vault's database:
--     psql -d DATABASE -v ON_ERROR_STOP=1 -f roles.sql
-- It can be repeated, and takes over tables that another role has made. Then give the role a password (\password ROLE,
-- which shows none to the server's log).
--
--     {service}    owns the vault: it deletes keys for good, and takes them out of the pages of their table
--
-- No other role can connect but the database's administrators.

BEGIN;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{service}') THEN
        CREATE ROLE {service} LOGIN;
    END IF;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN  -- as on a managed server
        GRANT {service} TO CURRENT_USER;
    END IF;
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO {service}', current_database());
END $$;

CREATE SCHEMA IF NOT EXISTS {schema};
ALTER SCHEMA {schema} OWNER TO {service};
REVOKE ALL ON SCHEMA {schema} FROM PUBLIC;

DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT format('ALTER TABLE %s OWNER TO {service}', oid::regclass) FROM pg_class
        WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'p')
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO {service}', oid::regprocedure) FROM pg_proc
        WHERE pronamespace = '{schema}'::regnamespace
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;

REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC;

COMMIT;
