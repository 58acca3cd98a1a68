-- The questions of the cookbook that are asked in SQL, in PostgreSQL's dialect; its commands are the same there. A test
-- compares the answers of both engines byte by byte. Run all, or one of them after the first statement:
--
--     psql -At -f schema/postgres/cookbook.sql postgres://…

SET search_path = jobledger; -- or the schema that the ledger's address names

-- What was host charlie running when it went down?
SELECT job, attempt, worker, claimed_at, last_heartbeat, outcome FROM attempts
WHERE host = 'charlie' AND claimed_at < '2026-03-15T00:17:01' AND coalesce(ended_at, '9') > '2026-03-15T00:17:01'
ORDER BY claimed_at, job;

-- Which workers went silent without stopping, in what order, and how many jobs did they lose?
SELECT greatest(s.at, max(a.claimed_at), max(a.last_heartbeat),
        max(a.ended_at) FILTER (WHERE a.outcome IN ('succeeded', 'failed', 'released'))) AS last_sign_of_life,
    s.worker, s.data::jsonb ->> 'host', s.data::jsonb ->> 'pid', count(*) FILTER (WHERE a.outcome = 'reclaimed')
FROM history s LEFT JOIN attempts a ON a.boot = s.data::jsonb ->> 'boot'
WHERE s.kind = 'worker_started'
    AND s.data::jsonb ->> 'boot' NOT IN (SELECT data::jsonb ->> 'boot' FROM history WHERE kind = 'worker_stopped')
GROUP BY s.pos, s.at, s.worker, s.data ORDER BY 1;

-- Which jobs were taken from a worker, when, from whom, and who got them next?
SELECT a.ended_at, a.job, a.worker, n.worker, n.claimed_at, n.outcome
FROM attempts a LEFT JOIN attempts n ON n.job = a.job AND n.attempt = a.attempt + 1
WHERE a.outcome = 'reclaimed' ORDER BY 1, 2;

-- How long did a lost job wait, from the end of its lease to the next claim, p50 and p99?
SELECT count(*), to_char(percentile_disc(0.50) WITHIN GROUP (ORDER BY s), '"p50 "FM999999990.0"s"'),
    to_char(percentile_disc(0.99) WITHIN GROUP (ORDER BY s), '"p99 "FM999999990.0"s"')
FROM (SELECT extract(epoch FROM n.claimed_at::timestamptz - (r.data::jsonb ->> 'lease_until')::timestamptz) AS s
    FROM history r JOIN attempts n ON n.job = r.job AND n.attempt = r.attempt + 1 WHERE r.kind = 'reclaimed') AS gap;

-- Which job has killed two workers?
SELECT job, string_agg(worker, ' ' ORDER BY attempt) FROM attempts WHERE outcome = 'reclaimed'
GROUP BY job HAVING count(DISTINCT boot) > 1;

-- Was a clock wrong? (a clock that was set back makes leases seem shorter)
SELECT to_char(extract(epoch FROM (data::jsonb ->> 'lease_until')::timestamptz - at::timestamptz), 'FM999999990"s"'),
    count(*), min(at), max(at)
FROM history WHERE kind IN ('claimed', 'heartbeat') GROUP BY 1;

-- And by the minute: how many jobs of mail were waiting, and how many held?
SELECT * FROM (SELECT left(h.at, 16) AS minute,
        sum(sum((h.to_state = 'queued')::int - coalesce((h.from_state = 'queued')::int, 0))) OVER (ORDER BY left(h.at, 16)),
        sum(sum((h.to_state IN ('claimed', 'running'))::int - coalesce((h.from_state IN ('claimed', 'running'))::int, 0)))
            OVER (ORDER BY left(h.at, 16))
    FROM history h JOIN current c ON c.id = h.job WHERE c.queue = 'mail' AND h.seq IS NOT NULL GROUP BY 1) AS m
WHERE minute BETWEEN '2026-03-15T01:45' AND '2026-03-15T02:15' ORDER BY 1;

-- How long did this job wait each time, after which event, and until when was it not ready?
SELECT at, kind, coalesce(data::jsonb ->> 'retry_at', data::jsonb ->> 'run_at'),
    to_char(extract(epoch FROM claimed::timestamptz - at::timestamptz), 'FM999999990"s"')
FROM (SELECT seq, at, kind, data, to_state, lead(at) OVER (ORDER BY seq) AS claimed FROM history
    WHERE job LIKE '01KKQJVTX2%' AND seq IS NOT NULL) AS steps WHERE to_state = 'queued' ORDER BY seq;

-- What was enqueued between 01:00 and 04:01, and had not ended an hour later?
SELECT * FROM (SELECT DISTINCT ON (job) job, enqueued, to_state, seq FROM (SELECT job, seq, at, to_state,
        first_value(at) OVER (PARTITION BY job ORDER BY seq) AS enqueued FROM history WHERE seq IS NOT NULL) AS steps
    WHERE enqueued BETWEEN '2026-03-15T01:00' AND '2026-03-15T04:01'
        AND at::timestamptz <= enqueued::timestamptz + interval '1 hour'
    ORDER BY job, seq DESC) AS then_
WHERE to_state IN ('queued', 'claimed', 'running') ORDER BY job;

-- How often did each error code occur, in how many jobs, from when to when?
SELECT coalesce(data::jsonb ->> 'error_code', data::jsonb ->> 'reason') AS code, count(*), count(DISTINCT job), min(at), max(at)
FROM history WHERE kind IN ('failed', 'reclaimed') GROUP BY code ORDER BY 2 DESC;

-- Which attempts lasted longest?
SELECT job, attempt, worker, outcome,
    to_char(extract(epoch FROM ended_at::timestamptz - claimed_at::timestamptz), 'FM999999990.0"s"')
FROM attempts WHERE ended_at IS NOT NULL ORDER BY ended_at::timestamptz - claimed_at::timestamptz DESC, job LIMIT 5;

-- Who cancelled, retried, paused or erased, from where (user@host), how many and why?
SELECT min(at), kind, count(*), actor, data::jsonb ->> 'reason' FROM history
WHERE kind IN ('cancelled', 'retried', 'rescheduled', 'queue_paused', 'queue_resumed', 'erased')
GROUP BY kind, actor, 5 ORDER BY 1;

-- Did customer 17's mail run on Sunday? (by its tag)
SELECT id, key, state, attempt, worker, finished_at FROM current
WHERE queue = 'mail' AND tags::jsonb ->> 'customer' = '17' AND finished_at LIKE '2026-03-15%' ORDER BY finished_at;
