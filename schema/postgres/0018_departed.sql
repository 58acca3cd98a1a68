-- How many jobs have left the ledger, so that its counts as of a moment are those of all jobs.
-- An older program does not know the field left of removed events, and would not keep the table.
UPDATE compatibility SET readable_from = 18, writable_from = 18;

CREATE TABLE departed (
    queue bigint NOT NULL, -- names.n; 0: jobs that left before removed events named their queues
    state bigint NOT NULL, -- states.n, as they ended; 0: as queue
    jobs  bigint NOT NULL,
    PRIMARY KEY (queue, state)
);
INSERT INTO departed
SELECT 0, 0, sum((data ->> 'jobs')::bigint) FROM events
WHERE kind = 33 AND kind > 5 AND pos > coalesce((SELECT max(pos) FROM events WHERE kind = 19 AND kind > 5), 0)
HAVING sum((data ->> 'jobs')::bigint) > 0
ON CONFLICT DO NOTHING;

-- Who could read or remove events before can do so now.
DO $$
DECLARE
    who record;
BEGIN
    FOR who IN
        SELECT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS name, g.privilege_type AS may
        FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) g LEFT JOIN pg_catalog.pg_roles r ON r.oid = g.grantee
        WHERE c.oid = 'events'::regclass AND g.grantee <> c.relowner AND g.privilege_type IN ('SELECT', 'DELETE')
    LOOP
        IF who.may = 'SELECT' THEN
            EXECUTE 'GRANT SELECT ON departed TO ' || who.name;
        ELSE
            EXECUTE 'GRANT INSERT, UPDATE ON departed TO ' || who.name;
        END IF;
    END LOOP;
END $$;
