-- Keys that are a job's own only for a while, and payloads that are replaced. The column key of jobs has a key while the
-- job has it; afterwards it is in more.
INSERT INTO kinds VALUES (32, 'replaced');

DROP VIEW current;

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
