-- The command of a claim that was lost has ended; another process of the worker holds the claim.
INSERT INTO kinds VALUES (29, 'stopped'), (30, 'taken_over');

-- Which claims were taken from their owners of late? Their commands may still run.
CREATE INDEX lost_claims ON events (at) WHERE kind IN (7, 8) AND attempt IS NOT NULL;

DROP VIEW history;

-- Every join is a left one: whatever an event refers to, the event itself is shown. The times within data are
-- stored as microseconds; json_replace writes only those that are there.
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

DROP VIEW attempts;

-- A worker that takes a claim over shows that it is alive, as a heartbeat does.
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
