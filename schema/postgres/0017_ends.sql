-- What was done for a job may run on after the job has ended: its command cannot be told at once, or cannot be ended.
-- A program of before does not know these fields of events, and starts what waits too early.
UPDATE compatibility SET readable_from = 17, writable_from = 17;

-- Until when at the latest the command of the last claim of a parent runs that has ended as it is to; null: nothing
-- runs any more, or the parent has not ended so.
ALTER TABLE deps ADD COLUMN until bigint;
CREATE INDEX ending ON deps (until) WHERE until IS NOT NULL;

CREATE OR REPLACE VIEW dependencies AS
SELECT c.id AS job, s.state, p.id AS after,
       CASE d.ending WHEN 1 THEN 'succeeded' WHEN 2 THEN 'failed' WHEN 3 THEN 'finished' ELSE 'hold' END AS ending,
       CASE d.broken WHEN 0 THEN 'open' ELSE 'broken' END AS waits, t.state AS after_state, instant(d.until) AS until
FROM deps d
JOIN jobs c ON c.n = d.child
JOIN states s ON s.n = c.state
LEFT JOIN jobs p ON p.n = d.parent
LEFT JOIN states t ON t.n = p.state;
