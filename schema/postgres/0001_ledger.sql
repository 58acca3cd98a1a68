-- The ledger on PostgreSQL 14 or newer: the same tables and the same views as on SQLite. It runs in one transaction,
-- with search_path set to the ledger's own schema, so nothing here names that.

-- Functions that read a table keep this path. pg_temp stands at its end, because a temporary table named events would
-- be found before the true one otherwise.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Which migrations have run? The program writes it after each.
CREATE TABLE about (schema_version bigint NOT NULL);
CREATE UNIQUE INDEX about_has_one_row ON about ((true));
INSERT INTO about VALUES (1);

-- Every name that an event may carry, once: actors and queues. Numbers that a failed transaction took stay unused.
CREATE TABLE names (
    n    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

-- Every process that ever claimed, once. A reused worker name is another row, because boot differs.
CREATE TABLE workers (
    n       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    worker  text COLLATE "C" NOT NULL,
    boot    text COLLATE "C" NOT NULL,
    host    text COLLATE "C" NOT NULL,
    pid     bigint NOT NULL,
    version text COLLATE "C" NOT NULL,
    UNIQUE (worker, boot, host, pid, version)
);

-- The words behind the small integers. Never renumbered, only added to.
CREATE TABLE kinds (n bigint PRIMARY KEY, kind text COLLATE "C" NOT NULL UNIQUE);
INSERT INTO kinds VALUES
    (1, 'enqueued'), (2, 'claimed'), (3, 'heartbeat'), (4, 'succeeded'), (5, 'failed'), (6, 'released'),
    (7, 'reclaimed'), (8, 'cancelled'), (9, 'retried'), (10, 'rescheduled'), (11, 'refused'), (12, 'erased'),
    (13, 'queue_paused'), (14, 'queue_resumed'), (15, 'worker_started'), (16, 'worker_stopped'),
    (17, 'rebuilt'), (18, 'restored'), (19, 'imported');
CREATE TABLE states (n bigint PRIMARY KEY, state text COLLATE "C" NOT NULL UNIQUE);
INSERT INTO states VALUES
    (1, 'queued'), (2, 'claimed'), (3, 'running'), (4, 'succeeded'), (5, 'failed'), (6, 'cancelled');

-- Who appends holds the ledger's lock until the commit, so pos is dense and grows in the order of the commits. That is
-- why the program gives it: a sequence has gaps, and shows a later number before an earlier one.
-- Rows are only ever added. Without dead rows the usual trigger for a vacuum would never fire, yet one is needed: it
-- marks pages as visible to all, so that the indexes answer alone. After a fixed number of rows, because a share of a
-- table that only grows comes later and later.
CREATE TABLE events (
    pos        bigint PRIMARY KEY,
    job        bigint,           -- pos of the job's enqueued event; null where no job is concerned
    seq        bigint,           -- 1, 2, 3… within the job; null for what changes no state
    kind       bigint NOT NULL,  -- kinds.n
    at         bigint NOT NULL,  -- UTC, microseconds since 1970
    actor      bigint NOT NULL,  -- names.n
    worker     bigint,           -- workers.n of the claim concerned
    ulid       text COLLATE "C", -- what this event names: enqueued the job, claimed and refused a lease token
    attempt    bigint,           -- the claim concerned
    from_state bigint,           -- states.n
    to_state   bigint,           -- states.n
    digest     bytea,            -- SHA-256(salt || payload) of enqueued; of the result, of succeeded and refused
    data       json,             -- without what the columns say; null: nothing more to say
    UNIQUE (job, seq),
    -- json keeps the text as it was written and so takes the escape of a NUL, on which every later ->> of that row would
    -- fail. Only where it may be one, not a backslash before u0000, the text is parsed; that fails if it is.
    CONSTRAINT events_data_is_readable CHECK (strpos(data::text, '\u0000') = 0 OR data::jsonb IS NOT NULL)
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 20000,
    autovacuum_analyze_scale_factor = 0.02
);

-- Which claims did this worker make, and when?
CREATE INDEX claims ON events (worker, at) WHERE kind = 2;

-- Payloads (pos of enqueued) and results (pos of succeeded), apart from events so that they can be erased.
CREATE TABLE bodies (
    pos  bigint PRIMARY KEY,
    salt bytea,          -- with the payload: the job's salt; an event holds SHA-256(salt || body)
    body bytea NOT NULL
);

-- What has been written stays as it was. The guards are fired per statement: that costs an insert nothing, and refuses
-- ON CONFLICT DO UPDATE and MERGE too.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: % refused', TG_ARGV[0], TG_OP
        USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
END $$;

CREATE TRIGGER events_no_update BEFORE UPDATE ON events
    EXECUTE FUNCTION refuse('events are append-only');
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
    EXECUTE FUNCTION refuse('events are append-only');
CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON events
    EXECUTE FUNCTION refuse('events are append-only');
CREATE TRIGGER names_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON names
    EXECUTE FUNCTION refuse('names are append-only');
CREATE TRIGGER workers_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON workers
    EXECUTE FUNCTION refuse('workers are append-only');
CREATE TRIGGER bodies_no_change BEFORE UPDATE OR TRUNCATE ON bodies
    EXECUTE FUNCTION refuse('bodies are written once');
CREATE TRIGGER about_no_removal BEFORE DELETE OR TRUNCATE ON about
    EXECUTE FUNCTION refuse('the schema version is always known');

-- New rows are dense among themselves, and the row before the first of them is there. The primary key does the rest:
-- in a ledger that was dense before, rows that collide with none can then only stand at its end.
-- The path is pinned, so that neither tables nor operators of the caller's are found here. A session keeps the plan that
-- it made when the ledger was small; reading a table as a whole must not be in it.
CREATE FUNCTION only_append() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF (SELECT max(a.pos) - min(a.pos) + 1 <> count(*)
            OR min(a.pos) <> 1 AND NOT EXISTS (SELECT FROM events WHERE pos = min(a.pos) - 1) FROM added a) THEN
        RAISE EXCEPTION 'events are append-only: the next one has the next pos'
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER events_only_append AFTER INSERT ON events REFERENCING NEW TABLE AS added
    EXECUTE FUNCTION only_append();

-- A session can play the replica, for which ordinary triggers are silent; these are not.
ALTER TABLE events
    ENABLE ALWAYS TRIGGER events_no_update, ENABLE ALWAYS TRIGGER events_no_delete,
    ENABLE ALWAYS TRIGGER events_no_truncate, ENABLE ALWAYS TRIGGER events_only_append;
ALTER TABLE names ENABLE ALWAYS TRIGGER names_no_change;
ALTER TABLE workers ENABLE ALWAYS TRIGGER workers_no_change;
ALTER TABLE bodies ENABLE ALWAYS TRIGGER bodies_no_change;
ALTER TABLE about ENABLE ALWAYS TRIGGER about_no_removal;

-- The projection: what the events add up to. It can be dropped and rebuilt at any time.

-- A job that runs through leaves two or three dead versions of its row, and dead entries at the head of ready, where
-- every claim begins. So vacuum comes early, long before a fifth of all finished jobs is dead rows, and does not pause.
-- Every transition changes an indexed column, so no update is a heap-only one; some room in each page lets the versions
-- of a row stay in one page, which saves a twenty-fifth of the WAL and does not make the table larger.
CREATE TABLE jobs (
    n                bigint PRIMARY KEY,               -- pos of enqueued
    id               text COLLATE "C" NOT NULL UNIQUE, -- ULID
    seq              bigint NOT NULL,                  -- of the last event that changed this row
    state            bigint NOT NULL,                  -- states.n
    lane             text COLLATE "C",                 -- (queue, priority, version, requires) in claiming order; null unless queued
    queue            bigint NOT NULL,                  -- names.n
    priority         bigint NOT NULL,
    run_at           bigint NOT NULL,
    key              text COLLATE "C",
    attempt          bigint NOT NULL,
    failures         bigint NOT NULL,
    snoozes          bigint NOT NULL,
    max_attempts     bigint NOT NULL,
    max_runtime      bigint,                           -- microseconds, as enqueued
    worker           bigint,                           -- workers.n of the owner, or of the last one once the job has ended
    lease_token      text COLLATE "C",
    claimed_at       bigint,
    heartbeat_at     bigint,
    lease_expires_at bigint,
    end_by           bigint,                           -- claimed_at + the max runtime in force for this claim
    finished_at      bigint,
    error_code       text COLLATE "C",
    more             json                              -- what is rare: version, requires, tags, progress, …
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 1000
);

CREATE INDEX ready ON jobs (lane, run_at, id) WHERE lane IS NOT NULL;
CREATE INDEX leases ON jobs (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE UNIQUE INDEX keys ON jobs (queue, key) WHERE key IS NOT NULL;

-- Few rows here and in presence, changed often: vacuum comes after a hundred dead ones. No index has the columns that
-- change, so half a page of room lets an update be a heap-only one, which needs no vacuum.
CREATE TABLE queues (
    queue  bigint PRIMARY KEY, -- names.n
    paused bigint NOT NULL,    -- 0 or 1
    since  bigint NOT NULL,
    actor  bigint NOT NULL,    -- names.n
    reason text
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_cost_delay = 0
);

-- Not part of the ledger: when a worker process was last seen, for the idle ones too.
CREATE TABLE presence (
    boot    text COLLATE "C" PRIMARY KEY,
    seen_at bigint NOT NULL
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_cost_delay = 0
);

-- The views are the contract for people with psql; the tables are not.

-- A time as people read it, in UTC. Seconds and the rest are added apart: a year 9999 has more microseconds than fit
-- exactly into the double that an interval is multiplied with. The answer is always the same, yet the function is not
-- called immutable: to_char is not, because of the names of months, so it would not be expanded into the query then,
-- and take three times as long.
CREATE FUNCTION instant(micros bigint) RETURNS text LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN to_char(timestamp '1970-01-01' + micros / 1000000 * interval '1 second' + micros % 1000000 * interval '1 microsecond',
    'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

-- The text in a body; null where the bytes are none (not UTF-8, or with a NUL, which no text here can have). An error
-- would hide all other jobs with it.
CREATE FUNCTION readable(body bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED AS $$
BEGIN
    RETURN pg_catalog.convert_from(body, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN NULL;
END $$;

-- Every join is a left one: whatever an event refers to, the event itself is shown. The times within data are stored
-- as microseconds. What is usual is not stored: a lease of one minute, five attempts, a run_at of now.
CREATE VIEW history AS
SELECT e.pos, q.ulid AS job, e.seq, k.kind, instant(e.at) AS at, a.name AS actor, w.worker,
       CASE WHEN e.kind IN (2, 11) THEN e.ulid
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
           CASE WHEN e.kind IN (2, 15, 16)
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
LEFT JOIN events q ON q.pos = e.job
LEFT JOIN workers w ON w.n = e.worker
LEFT JOIN states f ON f.n = e.from_state
LEFT JOIN states t ON t.n = e.to_state;

CREATE VIEW attempts AS
SELECT q.ulid AS job, c.attempt, q.data ->> 'queue' AS queue, w.worker, w.boot, w.host, w.pid, instant(c.at) AS claimed_at,
       (SELECT instant(h.at) FROM events h
        WHERE h.job = c.job AND h.seq > c.seq AND h.attempt = c.attempt AND h.kind = 3
        ORDER BY h.seq DESC LIMIT 1) AS last_heartbeat,
       instant(z.at) AS ended_at, k.kind AS outcome, (z.data ->> 'exit_code')::bigint AS exit_code, z.data ->> 'signal' AS signal
FROM events c
JOIN events q ON q.pos = c.job
JOIN workers w ON w.n = c.worker
LEFT JOIN LATERAL (
    SELECT x.at, x.kind, x.data FROM events x
    WHERE x.job = c.job AND x.seq > c.seq AND x.attempt = c.attempt AND x.kind IN (4, 5, 6, 7, 8)
    ORDER BY x.seq LIMIT 1) z ON true
LEFT JOIN kinds k ON k.n = z.kind
WHERE c.kind = 2;

CREATE VIEW current AS
SELECT j.id, j.seq, s.state, q.name AS queue, j.priority, instant(j.run_at) AS run_at,
       j.key, coalesce(j.more -> 'tags', '{}')::text AS tags, j.attempt, j.failures, j.max_attempts,
       j.max_runtime / 1e6::double precision AS max_runtime,
       j.more ->> 'version' AS version, coalesce(j.more -> 'requires', '[]')::text AS requires, w.worker,
       instant(j.claimed_at) AS claimed_at, instant(j.heartbeat_at) AS heartbeat_at, instant(j.lease_expires_at) AS lease_expires_at,
       (j.more ->> 'progress')::double precision AS progress, j.more ->> 'note' AS note,
       instant(j.finished_at) AS finished_at, j.error_code, j.more ->> 'error_detail' AS error_detail,
       (SELECT readable(b.body) FROM bodies b WHERE b.pos = j.n) AS payload,
       CASE WHEN j.state = 4 THEN
           (SELECT readable(b.body) FROM events e JOIN bodies b ON b.pos = e.pos WHERE e.job = j.n AND e.seq = j.seq)
       END AS result
FROM jobs j
JOIN states s ON s.n = j.state
JOIN names q ON q.n = j.queue
LEFT JOIN workers w ON w.n = j.worker;
