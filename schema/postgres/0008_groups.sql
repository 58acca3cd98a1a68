-- Jobs of groups, and how many of each group may run at once.
CREATE TABLE limits_before AS SELECT * FROM limits;
DROP TABLE limits;
CREATE TABLE limits (
    queue     bigint NOT NULL, -- names.n
    grp       text COLLATE "C" NOT NULL, -- '': the queue as a whole
    running   bigint,          -- how many jobs may be claimed or running at once
    per_group bigint,          -- how many of each group
    since     bigint NOT NULL,
    actor     bigint NOT NULL, -- names.n
    reason    text,
    PRIMARY KEY (queue, grp)
);
INSERT INTO limits SELECT queue, grp, running, null, since, actor, reason FROM limits_before;
DROP TABLE limits_before;

-- A row for each group with queued jobs in a lane: which group has waited for longest, and when it may start its next
-- job. Derived from the queued jobs, the last claims and the live claims.
CREATE TABLE group_heads (
    queue       bigint NOT NULL, -- names.n
    grp         text COLLATE "C" NOT NULL,
    lane        text COLLATE "C" NOT NULL, -- of the jobs, up to the group
    run_at      bigint NOT NULL, -- of the first of them
    served_at   bigint NOT NULL, -- of the last claim from here since there has been a queued job; 0: none
    served      bigint NOT NULL, -- its pos
    eligible_at bigint,          -- the later one of run_at and served_at; null: the group has all the live claims it may have
    PRIMARY KEY (queue, grp, lane)
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX eligible_groups ON group_heads (lane, eligible_at, served, grp) WHERE eligible_at IS NOT NULL;

DROP VIEW current;

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
       END AS result, j.more ->> 'group' AS grp
FROM jobs j
JOIN states s ON s.n = j.state
JOIN names q ON q.n = j.queue
LEFT JOIN workers w ON w.n = j.worker;
