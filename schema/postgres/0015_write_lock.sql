-- Writers exclude each other by a lock of this table, from their first statement to their commit. It has no rows. To
-- lock it takes the right to change it, as nobody has who may only read: an advisory lock, which was used for this
-- before, can be held by anybody who may connect.
CREATE TABLE write_lock (unused bigint);

-- From which version of the schema on does a program know enough to read this ledger, or to write it? So programs of
-- the version before can go on while one after the other is replaced. A migration that adds a kind of events, for
-- example, sets readable_from to its own number.
CREATE TABLE compatibility (readable_from bigint NOT NULL, writable_from bigint NOT NULL);
CREATE UNIQUE INDEX compatibility_has_one_row ON compatibility ((true));
INSERT INTO compatibility VALUES (15, 15);

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
            EXECUTE 'GRANT SELECT ON write_lock, compatibility TO ' || who.name;
        ELSE
            EXECUTE 'GRANT UPDATE ON write_lock TO ' || who.name;
        END IF;
    END LOOP;
END $$;

-- The id of the job comes from its row, so that WHERE job = … finds it by an index.
CREATE OR REPLACE VIEW history AS
SELECT e.pos, j.id AS job, e.seq, k.kind, instant(e.at) AS at, a.name AS actor, w.worker,
       CASE WHEN e.kind IN (2, 11, 29) THEN e.ulid
            WHEN e.attempt IS NOT NULL THEN
                (SELECT c.ulid FROM events c
                 WHERE c.job = e.job AND c.seq < e.seq AND c.kind = 2 ORDER BY c.seq DESC LIMIT 1)
       END AS token,
       e.attempt, f.state AS from_state, t.state AS to_state,
       jsonb_strip_nulls(coalesce(e.data::jsonb, '{}') || jsonb_build_object(
           'run_at', instant(coalesce((e.data ->> 'run_at')::bigint, CASE WHEN e.kind = 1 THEN e.at END)),
           'lease_until', instant(coalesce((e.data ->> 'lease_until')::bigint, CASE WHEN e.kind IN (2, 3) THEN e.at + 60000000 END)),
           'last_heartbeat', instant((e.data ->> 'last_heartbeat')::bigint),
           'retry_at', instant((e.data ->> 'retry_at')::bigint)) ||
           CASE WHEN e.kind IN (2, 15, 16, 30)
                THEN jsonb_build_object('boot', w.boot, 'host', w.host, 'pid', w.pid, 'version', nullif(w.version, ''))
                WHEN e.kind = 1
                THEN jsonb_build_object('payload_sha256', coalesce(nullif(encode(e.digest, 'hex'), ''), e.data ->> 'payload_sha256'),
                    'max_attempts', coalesce((e.data ->> 'max_attempts')::bigint, 5))
                WHEN e.digest IS NOT NULL
                THEN jsonb_build_object(CASE e.kind WHEN 4 THEN 'result_sha256' ELSE 'offered_sha256' END, encode(e.digest, 'hex'))
                ELSE '{}' END)::text AS data
FROM events e
LEFT JOIN kinds k ON k.n = e.kind
LEFT JOIN names a ON a.n = e.actor
LEFT JOIN jobs j ON j.n = e.job
LEFT JOIN workers w ON w.n = e.worker
LEFT JOIN states f ON f.n = e.from_state
LEFT JOIN states t ON t.n = e.to_state;

CREATE OR REPLACE VIEW attempts AS
SELECT j.id AS job, c.attempt, q.data ->> 'queue' AS queue, w.worker, w.boot, w.host, w.pid, instant(c.at) AS claimed_at,
       (SELECT instant(h.at) FROM events h
        WHERE h.job = c.job AND h.seq > c.seq AND h.attempt = c.attempt AND h.kind IN (3, 30)
        ORDER BY h.seq DESC LIMIT 1) AS last_heartbeat,
       instant(z.at) AS ended_at, k.kind AS outcome, (z.data ->> 'exit_code')::bigint AS exit_code, z.data ->> 'signal' AS signal
FROM events c
JOIN jobs j ON j.n = c.job
JOIN events q ON q.pos = c.job
JOIN workers w ON w.n = c.worker
LEFT JOIN LATERAL (
    SELECT x.at, x.kind, x.data FROM events x
    WHERE x.job = c.job AND x.seq > c.seq AND x.attempt = c.attempt AND x.kind IN (4, 5, 6, 7, 8)
    ORDER BY x.seq LIMIT 1) z ON true
LEFT JOIN kinds k ON k.n = z.kind
WHERE c.kind = 2;
