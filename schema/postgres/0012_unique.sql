-- Keys that are a job's own only for a while, and payloads that are replaced. The column key of jobs has a key while the
-- job has it; afterwards it is in more.
INSERT INTO kinds VALUES (32, 'replaced');

DROP VIEW current;

CREATE VIEW current AS
SELECT j.id, j.seq, s.state, q.name AS queue, j.priority, instant(j.run_at) AS run_at,
       coalesce(j.key, j.more ->> 'key') AS key, coalesce(j.more -> 'tags', '{}')::text AS tags, j.attempt, j.failures, j.max_attempts,
       j.max_runtime / 1e6::double precision AS max_runtime,
       j.more ->> 'version' AS version, coalesce(j.more -> 'requires', '[]')::text AS requires, w.worker,
       instant(j.claimed_at) AS claimed_at, instant(j.heartbeat_at) AS heartbeat_at, instant(j.lease_expires_at) AS lease_expires_at,
       (j.more ->> 'progress')::double precision AS progress, j.more ->> 'note' AS note,
       instant(j.finished_at) AS finished_at, j.error_code, j.more ->> 'error_detail' AS error_detail,
       (SELECT readable(b.body) FROM bodies b WHERE b.pos = coalesce(CAST(j.more ->> 'payload_at' AS bigint), j.n)) AS payload,
       CASE WHEN j.state = 4 THEN
           (SELECT readable(b.body) FROM events e JOIN bodies b ON b.pos = e.pos WHERE e.job = j.n AND e.seq = j.seq)
       END AS result, j.more ->> 'group' AS grp
FROM jobs j
JOIN states s ON s.n = j.state
JOIN names q ON q.n = j.queue
LEFT JOIN workers w ON w.n = j.worker;
