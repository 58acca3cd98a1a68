-- Schedules: jobs that are enqueued at set times.
INSERT INTO kinds VALUES (23, 'schedule_set'), (24, 'schedule_paused'), (25, 'schedule_resumed'),
    (26, 'schedule_removed'), (27, 'schedule_skipped');

-- A row for each schedule that there is: what its events add up to.
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
