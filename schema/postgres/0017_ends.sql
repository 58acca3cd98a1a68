-- What was done for a job may go on after the job has been cancelled, until its command has ended.
-- A program of before does not know the new fields of events, and starts too early what waits for such an end.
UPDATE compatibility SET readable_from = 17, writable_from = 17;

-- The claims that were cancelled and whose commands may still run. The events say so too; these rows find them. One that
-- is over may stay for a while.
CREATE TABLE ends (
    job     bigint PRIMARY KEY, -- jobs.n
    attempt bigint NOT NULL,
    until   bigint NOT NULL     -- the end of the claim's lease: by then the command has ended
);

-- The jobs that waited for one of those to end in that way, and are not to begin before its command has ended.
CREATE TABLE delayed (
    child  bigint NOT NULL, -- jobs.n of the job that is delayed
    parent bigint NOT NULL, -- jobs.n of the job that was waited for
    until  bigint NOT NULL, -- as in ends
    run_at bigint,          -- when it was to run otherwise; null: it still waits for others
    PRIMARY KEY (child, parent)
);
CREATE INDEX delayed_by ON delayed (parent);

-- Who could read or append before can do so now.
DO $$
DECLARE
    who record;
BEGIN
    FOR who IN
        SELECT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS name, g.privilege_type AS may
        FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) g LEFT JOIN pg_catalog.pg_roles r ON r.oid = g.grantee
        WHERE c.oid = 'events'::regclass AND g.grantee <> c.relowner AND g.privilege_type IN ('SELECT', 'INSERT')
    LOOP
        IF who.may = 'SELECT' THEN
            EXECUTE 'GRANT SELECT ON ends, delayed TO ' || who.name;
        ELSE
            EXECUTE 'GRANT INSERT, UPDATE, DELETE ON ends, delayed TO ' || who.name;
        END IF;
    END LOOP;
END $$;
