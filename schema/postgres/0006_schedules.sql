-- Schedules: jobs that are enqueued at set times.
INSERT INTO kinds VALUES (23, 'schedule_set'), (24, 'schedule_paused'), (25, 'schedule_resumed'),
    (26, 'schedule_removed'), (27, 'schedule_skipped');

-- A row for each schedule that there is: what its events add up to. Few rows, changed often: see queues.
CREATE TABLE timetable (
    name      text COLLATE "C" PRIMARY KEY,
    next_at   bigint,          -- the next tick, UTC in microseconds since 1970; null: none, or it is paused
    paused    bigint NOT NULL, -- 0 or 1
    since     bigint NOT NULL, -- of the last event that set, paused or resumed it; also the next two
    actor     bigint NOT NULL, -- names.n
    reason    text,
    last_tick bigint,          -- the last that made a job
    last_job  bigint,          -- the number of the last job, an operator's too
    spec      json NOT NULL    -- the data of its schedule_set, without next and reason
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_cost_delay = 0
);

CREATE VIEW schedules AS
SELECT t.name, t.spec ->> 'queue' AS queue, t.spec ->> 'cron' AS cron, (t.spec ->> 'every')::double precision AS every,
       t.spec ->> 'zone' AS zone, t.spec ->> 'catch_up' AS catch_up, t.spec ->> 'overlap' AS overlap, t.paused,
       instant(t.since) AS since, a.name AS actor, t.reason, instant(t.next_at) AS next_at, instant(t.last_tick) AS last_tick,
       q.ulid AS last_job, t.spec::text AS spec
FROM timetable t
LEFT JOIN names a ON a.n = t.actor
LEFT JOIN events q ON q.pos = t.last_job;
