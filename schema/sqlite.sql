-- The schema of a ledger on SQLite as all steps leave it, to be read. A test writes it.

CREATE TABLE names (
    n    INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TRIGGER names_no_update BEFORE UPDATE ON names
BEGIN SELECT raise(ABORT, 'names are append-only: UPDATE refused'); END;
CREATE TRIGGER names_no_delete BEFORE DELETE ON names
BEGIN SELECT raise(ABORT, 'names are append-only: DELETE refused'); END;
CREATE TRIGGER names_no_replace BEFORE INSERT ON names
WHEN EXISTS (SELECT 1 FROM names WHERE n = NEW.n OR name = NEW.name)
BEGIN SELECT raise(ABORT, 'names are append-only: this name is taken'); END;

CREATE TABLE workers (
    n       INTEGER PRIMARY KEY,
    worker  TEXT NOT NULL,
    boot    TEXT NOT NULL,
    host    TEXT NOT NULL,
    pid     INTEGER NOT NULL,
    version TEXT NOT NULL,
    UNIQUE (worker, boot, host, pid, version)
) STRICT;
CREATE TRIGGER workers_no_update BEFORE UPDATE ON workers
BEGIN SELECT raise(ABORT, 'workers are append-only: UPDATE refused'); END;
CREATE TRIGGER workers_no_delete BEFORE DELETE ON workers
BEGIN SELECT raise(ABORT, 'workers are append-only: DELETE refused'); END;
CREATE TRIGGER workers_no_replace BEFORE INSERT ON workers
WHEN EXISTS (SELECT 1 FROM workers WHERE n = NEW.n)
  OR EXISTS (SELECT 1 FROM workers WHERE worker = NEW.worker AND boot = NEW.boot AND host = NEW.host
             AND pid = NEW.pid AND version = NEW.version)
BEGIN SELECT raise(ABORT, 'workers are append-only: this worker is taken'); END;

CREATE TABLE kinds (n INTEGER PRIMARY KEY, kind TEXT NOT NULL UNIQUE) STRICT;

CREATE TABLE states (n INTEGER PRIMARY KEY, state TEXT NOT NULL UNIQUE) STRICT;

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
CREATE INDEX claims ON events (worker, at) WHERE kind = 2;
CREATE INDEX lost_claims ON events (at) WHERE kind IN (7, 8) AND attempt IS NOT NULL;
CREATE INDEX rare_events ON events (kind) WHERE kind > 5;
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT raise(ABORT, 'events are append-only: UPDATE refused'); END;
CREATE TRIGGER events_only_append BEFORE INSERT ON events
WHEN NEW.pos <> 1 + coalesce((SELECT max(pos) FROM events), 0)
  OR EXISTS (SELECT 1 FROM events WHERE job = NEW.job AND seq = NEW.seq)
BEGIN SELECT raise(ABORT, 'events are append-only: the next one has the next pos, and a (job, seq) of its own'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
WHEN OLD.job IS NULL OR OLD.pos > coalesce((SELECT max(hi) FROM segments), 0)
BEGIN SELECT raise(ABORT, 'events are append-only: DELETE refused'); END;

CREATE TABLE bodies (
    pos  INTEGER PRIMARY KEY,
    salt BLOB,          -- with the payload: the job's salt; an event holds SHA-256(salt || body)
    body BLOB NOT NULL
) STRICT;
CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies
BEGIN SELECT raise(ABORT, 'bodies are written once: UPDATE refused'); END;
CREATE TRIGGER bodies_no_replace BEFORE INSERT ON bodies
WHEN EXISTS (SELECT 1 FROM bodies WHERE pos = NEW.pos)
BEGIN SELECT raise(ABORT, 'bodies are written once: this one is taken'); END;

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

CREATE TABLE presence (
    boot    TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE keyframes (
    pos    INTEGER PRIMARY KEY, -- of the last event that counts
    ended  TEXT NOT NULL,       -- JSON: by queue, how many jobs had succeeded, failed and been cancelled
    queued BLOB NOT NULL,       -- the numbers of the queued jobs: the first, then differences, each a base 128 varint
    held   BLOB NOT NULL        -- those of the claimed and running jobs
) STRICT;

CREATE TABLE blocks (
    n    INTEGER PRIMARY KEY, -- from 0, without gaps
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE TRIGGER blocks_no_update BEFORE UPDATE ON blocks
BEGIN SELECT raise(ABORT, 'blocks are append-only: UPDATE refused'); END;
CREATE TRIGGER blocks_no_delete BEFORE DELETE ON blocks
BEGIN SELECT raise(ABORT, 'blocks are append-only: DELETE refused'); END;
CREATE TRIGGER blocks_no_replace BEFORE INSERT ON blocks
WHEN EXISTS (SELECT 1 FROM blocks WHERE n = NEW.n)
BEGIN SELECT raise(ABORT, 'blocks are append-only: this block is taken'); END;
CREATE TRIGGER blocks_no_gap AFTER INSERT ON blocks
WHEN NEW.n <> 0 AND NOT EXISTS (SELECT 1 FROM blocks WHERE n = NEW.n - 1)
BEGIN SELECT raise(ABORT, 'blocks are dense: the block before this one is missing'); END;

CREATE TABLE seals (
    n    INTEGER PRIMARY KEY, -- from 1, without gaps
    size INTEGER NOT NULL,    -- how many events are below the root
    at   INTEGER NOT NULL,    -- UTC, microseconds since 1970
    root BLOB NOT NULL CHECK (length(root) = 32),
    note TEXT                 -- the text of the checkpoint that was handed out; null: none was
, place TEXT) STRICT;
CREATE TRIGGER seals_no_update BEFORE UPDATE ON seals
BEGIN SELECT raise(ABORT, 'seals are append-only: UPDATE refused'); END;
CREATE TRIGGER seals_no_delete BEFORE DELETE ON seals
BEGIN SELECT raise(ABORT, 'seals are append-only: DELETE refused'); END;
CREATE TRIGGER seals_no_replace BEFORE INSERT ON seals
WHEN EXISTS (SELECT 1 FROM seals WHERE n = NEW.n)
BEGIN SELECT raise(ABORT, 'seals are append-only: this seal is taken'); END;
CREATE TRIGGER seals_no_gap AFTER INSERT ON seals
WHEN NEW.n <> 1 AND NOT EXISTS (SELECT 1 FROM seals WHERE n = NEW.n - 1)
BEGIN SELECT raise(ABORT, 'seals are dense: the seal before this one is missing'); END;

CREATE TABLE timetable (
    name      TEXT PRIMARY KEY,
    next_at   INTEGER,          -- the next tick, UTC in microseconds since 1970; null: none, or it is paused
    paused    INTEGER NOT NULL, -- 0 or 1
    since     INTEGER NOT NULL, -- of the last event that set, paused or resumed it; also the next two
    actor     INTEGER NOT NULL, -- names.n
    reason    TEXT,
    last_tick INTEGER,          -- the last that made a job
    last_job  INTEGER,          -- the number of the last job, an operator's too
    spec      TEXT NOT NULL     -- JSON: the data of its schedule_set, without next and reason
) STRICT, WITHOUT ROWID;

CREATE TABLE group_heads (
    queue       INTEGER NOT NULL, -- names.n
    grp         TEXT NOT NULL,
    lane        TEXT NOT NULL, -- of the jobs, up to the group
    run_at      INTEGER NOT NULL, -- of the first of them
    served_at   INTEGER NOT NULL, -- of the last claim from here since there has been a queued job; 0: none
    served      INTEGER NOT NULL, -- its pos
    eligible_at INTEGER,          -- the later one of run_at and served_at; null: the group has all the live claims it may have
    PRIMARY KEY (queue, grp, lane)
) STRICT, WITHOUT ROWID;
CREATE INDEX eligible_groups ON group_heads (lane, eligible_at, served, grp) WHERE eligible_at IS NOT NULL;

CREATE TABLE deps (
    parent INTEGER NOT NULL, -- jobs.n of the job that is waited for; 0: an operator's hold
    child  INTEGER NOT NULL, -- jobs.n of the job that waits
    ending INTEGER NOT NULL, -- 1: parent is to succeed, 2: to fail, 3: to end; 0: a hold
    broken INTEGER NOT NULL, -- 1: parent has ended in another way
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX waiting ON deps (child, broken);

CREATE TABLE resolving (
    parent INTEGER PRIMARY KEY, -- jobs.n
    child  INTEGER NOT NULL,    -- up to this one it is done
    heal   INTEGER NOT NULL     -- 1: the broken rows too
) STRICT;

CREATE TABLE group_rates (
    queue      INTEGER NOT NULL, -- names.n
    grp        TEXT NOT NULL,
    used_until INTEGER NOT NULL, -- the starts so far use up the rate until then
    PRIMARY KEY (queue, grp)
) STRICT, WITHOUT ROWID;

CREATE TABLE limits (
    queue          INTEGER NOT NULL, -- names.n
    grp            TEXT NOT NULL, -- '': the queue as a whole; else an exception for that group
    running        INTEGER,          -- how many jobs may be claimed or running at once
    per_group      INTEGER,          -- how many of each group
    rate           INTEGER,          -- how many may start within rate_per
    rate_per       INTEGER,          -- microseconds
    burst          INTEGER,          -- how many of them at once; null: one
    used_until     INTEGER,          -- the starts so far use up the rate until then; null: none since the rate was set
    group_rate     INTEGER,          -- how many of each group may start within group_rate_per
    group_rate_per INTEGER,          -- microseconds
    group_burst    INTEGER,          -- how many of them at once; null: one
    ageing         INTEGER,          -- the wait that counts as much as one more of priority, in microseconds; null: none does
    since          INTEGER NOT NULL,
    actor          INTEGER NOT NULL, -- names.n
    reason         TEXT,
    PRIMARY KEY (queue, grp)
) STRICT, WITHOUT ROWID;

CREATE TABLE segments (
    hi  INTEGER PRIMARY KEY, -- the last event of the range
    lo  INTEGER NOT NULL,    -- the one before its first
    pos INTEGER NOT NULL     -- of the event archived
) STRICT;
CREATE TRIGGER segments_no_update BEFORE UPDATE ON segments
BEGIN SELECT raise(ABORT, 'segments are append-only: UPDATE refused'); END;
CREATE TRIGGER segments_no_delete BEFORE DELETE ON segments
BEGIN SELECT raise(ABORT, 'segments are append-only: DELETE refused'); END;
CREATE TRIGGER segments_only_append BEFORE INSERT ON segments
WHEN NEW.hi <= NEW.lo OR NEW.hi >= NEW.pos OR NEW.lo <> coalesce((SELECT max(hi) FROM segments), 0)
  OR NOT EXISTS (SELECT 1 FROM events WHERE pos = NEW.pos AND kind = 21 AND data ->> 'hi' = NEW.hi)
BEGIN SELECT raise(ABORT, 'segments are append-only: an archived event names the next one'); END;

CREATE TABLE past (
    queue  INTEGER NOT NULL, -- names.n
    key    TEXT NOT NULL,
    id     TEXT NOT NULL,    -- of the job, a ULID
    state  INTEGER NOT NULL, -- states.n, as it ended
    digest BLOB NOT NULL,    -- of its payload, as its event has it
    salt   BLOB,             -- of the digest; null: the payload was erased
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER past_no_update BEFORE UPDATE ON past
WHEN NEW.salt IS NOT NULL OR NEW.queue <> OLD.queue OR NEW.key <> OLD.key OR NEW.id <> OLD.id OR NEW.state <> OLD.state
  OR NEW.digest <> OLD.digest
BEGIN SELECT raise(ABORT, 'past is append-only: UPDATE refused'); END;
CREATE TRIGGER past_no_delete BEFORE DELETE ON past
BEGIN SELECT raise(ABORT, 'past is append-only: DELETE refused'); END;
CREATE TRIGGER past_no_replace BEFORE INSERT ON past
WHEN EXISTS (SELECT 1 FROM past WHERE queue = NEW.queue AND key = NEW.key)
BEGIN SELECT raise(ABORT, 'past is append-only: this key is taken'); END;

CREATE TABLE ends (
    job     INTEGER PRIMARY KEY, -- jobs.n
    attempt INTEGER NOT NULL,
    until   INTEGER NOT NULL     -- the end of the claim's lease: by then the command has ended
) STRICT;

CREATE TABLE delayed (
    child  INTEGER NOT NULL, -- jobs.n of the job that is delayed
    parent INTEGER NOT NULL, -- jobs.n of the job that was waited for
    until  INTEGER NOT NULL, -- as in ends
    run_at INTEGER,          -- when it was to run otherwise; null: it still waits for others
    PRIMARY KEY (child, parent)
) STRICT, WITHOUT ROWID;
CREATE INDEX delayed_by ON delayed (parent);

CREATE TABLE departed (
    queue INTEGER NOT NULL, -- names.n; 0: jobs that left before removed events named their queues
    state INTEGER NOT NULL, -- states.n, as they ended; 0: as queue
    jobs  INTEGER NOT NULL,
    PRIMARY KEY (queue, state)
) STRICT, WITHOUT ROWID;

CREATE TABLE inbox (
    n       INTEGER PRIMARY KEY,  -- the order in which the jobs are enqueued
    id      TEXT NOT NULL CHECK (length(id) = 26), -- of the job: a ULID
    job     TEXT NOT NULL CHECK (length(CAST(job AS BLOB)) <= 131072), -- JSON: queue, and what else it is to have
    payload BLOB CHECK (length(payload) <= 1048576),
    at      INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)), -- when it was asked for
    role    TEXT NOT NULL DEFAULT '' -- empty: a file knows no roles
) STRICT;

CREATE TABLE inbox_refused (
    n          INTEGER PRIMARY KEY, -- the order in which they were refused
    id         TEXT NOT NULL,
    job        TEXT NOT NULL,
    payload    BLOB,
    at         INTEGER NOT NULL,
    role       TEXT NOT NULL,
    refused_at INTEGER NOT NULL,
    why        TEXT NOT NULL
) STRICT;

CREATE VIEW history AS
SELECT e.pos, q.ulid AS job, e.seq, k.kind,
       strftime('%Y-%m-%dT%H:%M:%S', e.at / 1000000, 'unixepoch') || printf('.%06dZ', e.at % 1000000) AS at,
       a.name AS actor, w.worker,
       CASE WHEN e.kind IN (2, 11, 29) THEN e.ulid
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
           CASE WHEN e.kind IN (15, 16, 30)
                THEN json_object('boot', w.boot, 'host', w.host, 'pid', w.pid, 'version', nullif(w.version, ''))
                WHEN e.kind = 2
                THEN json_object('boot', w.boot, 'host', w.host, 'pid', w.pid, 'version', nullif(w.version, ''), 'lease_until',
                    strftime('%Y-%m-%dT%H:%M:%S', coalesce(e.data ->> 'lease_until', e.at + 60000000) / 1000000, 'unixepoch') || printf('.%06dZ', coalesce(e.data ->> 'lease_until', e.at + 60000000) % 1000000))
                WHEN e.kind = 3
                THEN json_object('lease_until',
                    strftime('%Y-%m-%dT%H:%M:%S', coalesce(e.data ->> 'lease_until', e.at + 60000000) / 1000000, 'unixepoch') || printf('.%06dZ', coalesce(e.data ->> 'lease_until', e.at + 60000000) % 1000000))
                WHEN e.kind = 1
                THEN json_object('payload_sha256', coalesce(nullif(lower(hex(e.digest)), ''), e.data ->> 'payload_sha256'),
                    'max_attempts', coalesce(e.data ->> 'max_attempts', 5), 'run_at',
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
        FROM events h WHERE h.job = c.job AND h.seq > c.seq AND h.attempt = c.attempt AND h.kind IN (3, 30)
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

CREATE VIEW schedules AS
SELECT t.name, t.spec ->> 'queue' AS queue, t.spec ->> 'cron' AS cron, t.spec ->> 'every' AS every, t.spec ->> 'zone' AS zone,
       t.spec ->> 'catch_up' AS catch_up, t.spec ->> 'overlap' AS overlap, t.paused,
       strftime('%Y-%m-%dT%H:%M:%S', t.since / 1000000, 'unixepoch') || printf('.%06dZ', t.since % 1000000) AS since,
       a.name AS actor, t.reason,
       strftime('%Y-%m-%dT%H:%M:%S', t.next_at / 1000000, 'unixepoch') || printf('.%06dZ', t.next_at % 1000000) AS next_at,
       strftime('%Y-%m-%dT%H:%M:%S', t.last_tick / 1000000, 'unixepoch') || printf('.%06dZ', t.last_tick % 1000000) AS last_tick,
       q.ulid AS last_job, t.spec
FROM timetable t
LEFT JOIN names a ON a.n = t.actor
LEFT JOIN events q ON q.pos = t.last_job;

CREATE VIEW dependencies AS
SELECT c.id AS job, s.state, p.id AS after,
       CASE d.ending WHEN 1 THEN 'succeeded' WHEN 2 THEN 'failed' WHEN 3 THEN 'finished' ELSE 'hold' END AS ending,
       CASE d.broken WHEN 0 THEN 'open' ELSE 'broken' END AS waits, t.state AS after_state
FROM deps d
JOIN jobs c ON c.n = d.child
JOIN states s ON s.n = c.state
LEFT JOIN jobs p ON p.n = d.parent
LEFT JOIN states t ON t.n = p.state;

CREATE VIEW current AS
SELECT j.id, j.seq, s.state, q.name AS queue, j.priority,
       strftime('%Y-%m-%dT%H:%M:%S', j.run_at / 1000000, 'unixepoch') || printf('.%06dZ', j.run_at % 1000000) AS run_at,
       coalesce(j.key, j.more ->> 'key') AS key, coalesce(j.more -> 'tags', '{}') AS tags, j.attempt, j.failures, j.max_attempts, j.max_runtime / 1e6 AS max_runtime,
       j.more ->> 'version' AS version, coalesce(j.more -> 'requires', '[]') AS requires, w.worker,
       strftime('%Y-%m-%dT%H:%M:%S', j.claimed_at / 1000000, 'unixepoch') || printf('.%06dZ', j.claimed_at % 1000000) AS claimed_at,
       strftime('%Y-%m-%dT%H:%M:%S', j.heartbeat_at / 1000000, 'unixepoch') || printf('.%06dZ', j.heartbeat_at % 1000000) AS heartbeat_at,
       strftime('%Y-%m-%dT%H:%M:%S', j.lease_expires_at / 1000000, 'unixepoch') || printf('.%06dZ', j.lease_expires_at % 1000000) AS lease_expires_at,
       j.more ->> 'progress' AS progress, j.more ->> 'note' AS note,
       strftime('%Y-%m-%dT%H:%M:%S', j.finished_at / 1000000, 'unixepoch') || printf('.%06dZ', j.finished_at % 1000000) AS finished_at,
       j.error_code, j.more ->> 'error_detail' AS error_detail,
       (SELECT CAST(b.body AS TEXT) FROM bodies b WHERE b.pos = coalesce(CAST(j.more ->> 'payload_at' AS bigint), j.n)) AS payload,
       CASE WHEN j.state = 4 THEN
           (SELECT CAST(b.body AS TEXT) FROM events e JOIN bodies b ON b.pos = e.pos WHERE e.job = j.n AND e.seq = j.seq)
       END AS result, j.more ->> 'group' AS grp
FROM jobs j
JOIN states s ON s.n = j.state
JOIN names q ON q.n = j.queue
LEFT JOIN workers w ON w.n = j.worker;
