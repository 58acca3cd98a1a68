-- Jobs that programs ask for within transactions of their own, in this same database. A claim or a sweep takes the rows out
-- and enqueues their jobs, in one transaction. What a row holds is not trusted before that. The tables are not evidence.
-- An older program would take the trigger for a foreign one, and write nothing.
UPDATE compatibility SET readable_from = 29, writable_from = 29;

CREATE TABLE inbox (
    n       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order in which the jobs are enqueued
    id      text COLLATE "C" NOT NULL CHECK (length(id) = 26), -- of the job: a ULID
    job     text NOT NULL CHECK (octet_length(job) <= 131072), -- JSON: queue, and what else it is to have
    payload bytea CHECK (octet_length(payload) <= 1048576),
    at      bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, -- when it was asked for
    role    text NOT NULL DEFAULT session_user -- who asked
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE TABLE inbox_refused (
    n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order in which they were refused
    id         text COLLATE "C" NOT NULL,
    job        text NOT NULL,
    payload    bytea,
    at         bigint NOT NULL,
    role       text NOT NULL,
    refused_at bigint NOT NULL,
    why        text NOT NULL
);

-- Who could read or write events before can do so now.
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
            EXECUTE 'GRANT SELECT ON inbox, inbox_refused TO ' || who.name;
        ELSE
            EXECUTE 'GRANT INSERT, DELETE ON inbox, inbox_refused TO ' || who.name;
        END IF;
    END LOOP;
END $$;

-- Transactions that notify commit one after the other, so of those that commit at the same time only one does, which has
-- the lock until then: who was notified looks again soon, and sees the others. 5: a job may be claimable, the inbox has rows.
CREATE FUNCTION inbox_wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtext('jobledger_inbox ' || TG_TABLE_SCHEMA)) THEN
        PERFORM pg_catalog.pg_notify('jobledger_' || TG_TABLE_SCHEMA, 'inbox 5');
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER inbox_wake AFTER INSERT ON inbox
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION inbox_wake();
ALTER TABLE inbox ENABLE ALWAYS TRIGGER inbox_wake;
