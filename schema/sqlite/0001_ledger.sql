-- The ledger: what happened, in order, for ever.

-- Every name that an event may carry, once: actors and queues.
CREATE TABLE names (
    n    INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- Every process that ever claimed, once. A reused worker name is another row, because boot differs.
CREATE TABLE workers (
    n       INTEGER PRIMARY KEY,
    worker  TEXT NOT NULL,
    boot    TEXT NOT NULL,
    host    TEXT NOT NULL,
    pid     INTEGER NOT NULL,
    version TEXT NOT NULL,
    UNIQUE (worker, boot, host, pid, version)
) STRICT;

-- The words behind the small integers. Never renumbered, only added to.
CREATE TABLE kinds (n INTEGER PRIMARY KEY, kind TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO kinds VALUES
    (1, 'enqueued'), (2, 'claimed'), (3, 'heartbeat'), (4, 'succeeded'), (5, 'failed'), (6, 'released'),
    (7, 'reclaimed'), (8, 'cancelled'), (9, 'retried'), (10, 'rescheduled'), (11, 'refused'), (12, 'erased'),
    (13, 'queue_paused'), (14, 'queue_resumed'), (15, 'worker_started'), (16, 'worker_stopped'),
    (17, 'rebuilt'), (18, 'restored'), (19, 'imported');
CREATE TABLE states (n INTEGER PRIMARY KEY, state TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO states VALUES
    (1, 'queued'), (2, 'claimed'), (3, 'running'), (4, 'succeeded'), (5, 'failed'), (6, 'cancelled');

CREATE TABLE events (
    pos        INTEGER PRIMARY KEY AUTOINCREMENT,
    job        INTEGER,          -- pos of the job's enqueued event; null where no job is concerned
    seq        INTEGER,          -- 1, 2, 3… within the job; null for what changes no state
    kind       INTEGER NOT NULL, -- kinds.n
    at         INTEGER NOT NULL, -- UTC, microseconds since 1970
    actor      INTEGER NOT NULL, -- names.n
    worker     INTEGER,          -- workers.n of the claim concerned
    ulid       TEXT,             -- what this event names: enqueued the job, claimed and refused a lease token
    attempt    INTEGER,          -- the claim concerned
    from_state INTEGER,          -- states.n
    to_state   INTEGER,          -- states.n
    digest     BLOB,             -- SHA-256(salt || payload) of enqueued; of the result, of succeeded and refused
    data       TEXT,             -- JSON, without what the columns say; null: nothing more to say
    UNIQUE (job, seq)
) STRICT;

-- Which claims did this worker make, and when?
CREATE INDEX claims ON events (worker, at) WHERE kind = 2;

-- Payloads (pos of enqueued) and results (pos of succeeded), apart from events so that they can be erased.
CREATE TABLE bodies (
    pos  INTEGER PRIMARY KEY,
    salt BLOB,          -- with the payload: the job's salt; an event holds SHA-256(salt || body)
    body BLOB NOT NULL
) STRICT;

-- What has been written stays as it was. OR REPLACE deletes without firing DELETE triggers unless
-- recursive_triggers is on, so an insert over an existing row is refused before it can replace one.
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT raise(ABORT, 'events are append-only: UPDATE refused'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN SELECT raise(ABORT, 'events are append-only: DELETE refused'); END;
CREATE TRIGGER events_no_replace BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE pos = NEW.pos)
  OR EXISTS (SELECT 1 FROM events WHERE job = NEW.job AND seq = NEW.seq)
BEGIN SELECT raise(ABORT, 'events are append-only: this pos or (job, seq) is taken'); END;
CREATE TRIGGER events_no_gap AFTER INSERT ON events
WHEN NEW.pos <> 1 AND NOT EXISTS (SELECT 1 FROM events WHERE pos = NEW.pos - 1)
BEGIN SELECT raise(ABORT, 'events are dense: the pos before this one is missing'); END;

CREATE TRIGGER names_no_update BEFORE UPDATE ON names
BEGIN SELECT raise(ABORT, 'names are append-only: UPDATE refused'); END;
CREATE TRIGGER names_no_delete BEFORE DELETE ON names
BEGIN SELECT raise(ABORT, 'names are append-only: DELETE refused'); END;
CREATE TRIGGER names_no_replace BEFORE INSERT ON names
WHEN EXISTS (SELECT 1 FROM names WHERE n = NEW.n OR name = NEW.name)
BEGIN SELECT raise(ABORT, 'names are append-only: this name is taken'); END;
CREATE TRIGGER workers_no_update BEFORE UPDATE ON workers
BEGIN SELECT raise(ABORT, 'workers are append-only: UPDATE refused'); END;
CREATE TRIGGER workers_no_delete BEFORE DELETE ON workers
BEGIN SELECT raise(ABORT, 'workers are append-only: DELETE refused'); END;
CREATE TRIGGER workers_no_replace BEFORE INSERT ON workers
WHEN EXISTS (SELECT 1 FROM workers WHERE n = NEW.n)
  OR EXISTS (SELECT 1 FROM workers WHERE worker = NEW.worker AND boot = NEW.boot AND host = NEW.host
             AND pid = NEW.pid AND version = NEW.version)
BEGIN SELECT raise(ABORT, 'workers are append-only: this worker is taken'); END;
CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies
BEGIN SELECT raise(ABORT, 'bodies are written once: UPDATE refused'); END;
CREATE TRIGGER bodies_no_replace BEFORE INSERT ON bodies
WHEN EXISTS (SELECT 1 FROM bodies WHERE pos = NEW.pos)
BEGIN SELECT raise(ABORT, 'bodies are written once: this one is taken'); END;

-- The projection: what the events add up to. It can be dropped and rebuilt at any time.

CREATE TABLE jobs (
    n                INTEGER PRIMARY KEY,  -- pos of enqueued
    id               TEXT NOT NULL UNIQUE, -- ULID
    seq              INTEGER NOT NULL,     -- of the last event that changed this row
    state            INTEGER NOT NULL,     -- states.n
    lane             TEXT,                 -- (queue, priority, version, requires) in claiming order; null unless queued
    queue            INTEGER NOT NULL,     -- names.n
    priority         INTEGER NOT NULL,
    run_at           INTEGER NOT NULL,
    key              TEXT,
    attempt          INTEGER NOT NULL,
    failures         INTEGER NOT NULL,
    snoozes          INTEGER NOT NULL,
    max_attempts     INTEGER NOT NULL,
    max_runtime      INTEGER,              -- microseconds, as enqueued
    worker           INTEGER,              -- workers.n of the owner, or of the last one once the job has ended
    lease_token      TEXT,
    claimed_at       INTEGER,
    heartbeat_at     INTEGER,
    lease_expires_at INTEGER,
    end_by           INTEGER,              -- claimed_at + the max runtime in force for this claim
    finished_at      INTEGER,
    error_code       TEXT,
    more             TEXT                  -- JSON of what is rare: version, requires, tags, progress, …
) STRICT;

CREATE INDEX ready ON jobs (lane, run_at, id) WHERE lane IS NOT NULL;
CREATE INDEX leases ON jobs (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE UNIQUE INDEX keys ON jobs (queue, key) WHERE key IS NOT NULL;

CREATE TABLE queues (
    queue  INTEGER PRIMARY KEY, -- names.n
    paused INTEGER NOT NULL,    -- 0 or 1
    since  INTEGER NOT NULL,
    actor  INTEGER NOT NULL,    -- names.n
    reason TEXT
) STRICT;

-- Not part of the ledger: when a worker process was last seen, for the idle ones too.
CREATE TABLE presence (
    boot    TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The views are the contract for people with a sqlite3 shell; the tables are not.

-- Every join is a left one: whatever an event refers to, the event itself is shown. The times within data are
-- stored as microseconds; json_replace writes only those that are there.
CREATE VIEW history AS
SELECT e.pos, q.ulid AS job, e.seq, k.kind,
       strftime('%Y-%m-%dT%H:%M:%S', e.at / 1000000, 'unixepoch') || printf('.%06dZ', e.at % 1000000) AS at,
       a.name AS actor, w.worker,
       CASE WHEN e.kind IN (2, 11) THEN e.ulid
            WHEN e.attempt IS NOT NULL THEN
                (SELECT c.ulid FROM events c
                 WHERE c.job = e.job AND c.seq < e.seq AND c.kind = 2 ORDER BY c.seq DESC LIMIT 1)
       END AS token,
       e.attempt, f.state AS from_state, t.state AS to_state,
       json_patch(json_replace(coalesce(e.data, '{}'),
           '$.run_at', strftime('%Y-%m-%dT%H:%M:%S', (e.data ->> 'run_at') / 1000000, 'unixepoch') || printf('.%06dZ', (e.data ->> 'run_at') % 1000000),
           '$.lease_until', strftime('%Y-%m-%dT%H:%M:%S', (e.data ->> 'lease_until') / 1000000, 'unixepoch') || printf('.%06dZ', (e.data ->> 'lease_until') % 1000000),
           '$.last_heartbeat', strftime('%Y-%m-%dT%H:%M:%S', (e.data ->> 'last_heartbeat') / 1000000, 'unixepoch') || printf('.%06dZ', (e.data ->> 'last_heartbeat') % 1000000),
           '$.retry_at', strftime('%Y-%m-%dT%H:%M:%S', (e.data ->> 'retry_at') / 1000000, 'unixepoch') || printf('.%06dZ', (e.data ->> 'retry_at') % 1000000)),
           CASE WHEN e.kind IN (2, 15, 16)
                THEN json_object('boot', w.boot, 'host', w.host, 'pid', w.pid, 'version', nullif(w.version, ''))
                WHEN e.kind = 1
                THEN json_object('payload_sha256', coalesce(nullif(lower(hex(e.digest)), ''), e.data ->> 'payload_sha256'), 'run_at',
                    strftime('%Y-%m-%dT%H:%M:%S', coalesce(e.data ->> 'run_at', e.at) / 1000000, 'unixepoch') || printf('.%06dZ', coalesce(e.data ->> 'run_at', e.at) % 1000000))
                WHEN e.digest IS NOT NULL
                THEN json_object(CASE e.kind WHEN 4 THEN 'result_sha256' ELSE 'offered_sha256' END, lower(hex(e.digest)))
                ELSE '{}' END) AS data
FROM events e
LEFT JOIN kinds k ON k.n = e.kind
LEFT JOIN names a ON a.n = e.actor
LEFT JOIN events q ON q.pos = e.job
LEFT JOIN workers w ON w.n = e.worker
LEFT JOIN states f ON f.n = e.from_state
LEFT JOIN states t ON t.n = e.to_state;

CREATE VIEW attempts AS
SELECT q.ulid AS job, c.attempt, q.data ->> 'queue' AS queue, w.worker, w.boot, w.host, w.pid,
       strftime('%Y-%m-%dT%H:%M:%S', c.at / 1000000, 'unixepoch') || printf('.%06dZ', c.at % 1000000) AS claimed_at,
       (SELECT strftime('%Y-%m-%dT%H:%M:%S', h.at / 1000000, 'unixepoch') || printf('.%06dZ', h.at % 1000000)
        FROM events h WHERE h.job = c.job AND h.seq > c.seq AND h.attempt = c.attempt AND h.kind = 3
        ORDER BY h.seq DESC LIMIT 1) AS last_heartbeat,
       strftime('%Y-%m-%dT%H:%M:%S', z.at / 1000000, 'unixepoch') || printf('.%06dZ', z.at % 1000000) AS ended_at,
       k.kind AS outcome, z.data ->> 'exit_code' AS exit_code, z.data ->> 'signal' AS signal
FROM events c
JOIN events q ON q.pos = c.job
JOIN workers w ON w.n = c.worker
LEFT JOIN events z ON z.job = c.job AND z.seq =
    (SELECT min(x.seq) FROM events x
     WHERE x.job = c.job AND x.seq > c.seq AND x.attempt = c.attempt AND x.kind IN (4, 5, 6, 7, 8))
LEFT JOIN kinds k ON k.n = z.kind
WHERE c.kind = 2;

CREATE VIEW current AS
SELECT j.id, j.seq, s.state, q.name AS queue, j.priority,
       strftime('%Y-%m-%dT%H:%M:%S', j.run_at / 1000000, 'unixepoch') || printf('.%06dZ', j.run_at % 1000000) AS run_at,
       j.key, coalesce(j.more -> 'tags', '{}') AS tags, j.attempt, j.failures, j.max_attempts, j.max_runtime / 1e6 AS max_runtime,
       j.more ->> 'version' AS version, coalesce(j.more -> 'requires', '[]') AS requires, w.worker,
       strftime('%Y-%m-%dT%H:%M:%S', j.claimed_at / 1000000, 'unixepoch') || printf('.%06dZ', j.claimed_at % 1000000) AS claimed_at,
       strftime('%Y-%m-%dT%H:%M:%S', j.heartbeat_at / 1000000, 'unixepoch') || printf('.%06dZ', j.heartbeat_at % 1000000) AS heartbeat_at,
       strftime('%Y-%m-%dT%H:%M:%S', j.lease_expires_at / 1000000, 'unixepoch') || printf('.%06dZ', j.lease_expires_at % 1000000) AS lease_expires_at,
       j.more ->> 'progress' AS progress, j.more ->> 'note' AS note,
       strftime('%Y-%m-%dT%H:%M:%S', j.finished_at / 1000000, 'unixepoch') || printf('.%06dZ', j.finished_at % 1000000) AS finished_at,
       j.error_code, j.more ->> 'error_detail' AS error_detail,
       (SELECT CAST(b.body AS TEXT) FROM bodies b WHERE b.pos = j.n) AS payload,
       CASE WHEN j.state = 4 THEN
           (SELECT CAST(b.body AS TEXT) FROM events e JOIN bodies b ON b.pos = e.pos WHERE e.job = j.n AND e.seq = j.seq)
       END AS result
FROM jobs j
JOIN states s ON s.n = j.state
JOIN names q ON q.n = j.queue
LEFT JOIN workers w ON w.n = j.worker;
