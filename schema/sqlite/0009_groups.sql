-- Jobs of groups, and how many of each group may run at once.
CREATE TABLE limits_before AS SELECT * FROM limits;
DROP TABLE limits;
CREATE TABLE limits (
    queue     INTEGER NOT NULL, -- names.n
    grp       TEXT NOT NULL, -- '': the queue as a whole
    running   INTEGER,          -- how many jobs may be claimed or running at once
    per_group INTEGER,          -- how many of each group
    since     INTEGER NOT NULL,
    actor     INTEGER NOT NULL, -- names.n
    reason    TEXT,
    PRIMARY KEY (queue, grp)
) STRICT, WITHOUT ROWID;
INSERT INTO limits SELECT queue, grp, running, null, since, actor, reason FROM limits_before;
DROP TABLE limits_before;

-- A row for each group with queued jobs in a lane: which group has waited for longest, and when it may start its next
-- job. Derived from the queued jobs, the last claims and the live claims.
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

DROP VIEW current;

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
       END AS result, j.more ->> 'group' AS grp
FROM jobs j
JOIN states s ON s.n = j.state
JOIN names q ON q.n = j.queue
LEFT JOIN workers w ON w.n = j.worker;
