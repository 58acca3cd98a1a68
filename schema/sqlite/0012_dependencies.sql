-- Jobs that wait for other jobs.
INSERT INTO kinds VALUES (28, 'unblocked');
INSERT INTO states VALUES (7, 'blocked');

-- What each job still waits for, derived from the events. A blocked job has a row for each job that has not ended as it
-- is to; so has one that was cancelled because a job did not. Other jobs have none.
CREATE TABLE deps (
    parent INTEGER NOT NULL, -- jobs.n of the job that is waited for; 0: an operator's hold
    child  INTEGER NOT NULL, -- jobs.n of the job that waits
    ending INTEGER NOT NULL, -- 1: parent is to succeed, 2: to fail, 3: to end; 0: a hold
    broken INTEGER NOT NULL, -- 1: parent has ended in another way
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX waiting ON deps (child, broken);

-- The jobs with many that wait for them, which are resolved in steps.
CREATE TABLE resolving (
    parent INTEGER PRIMARY KEY, -- jobs.n
    child  INTEGER NOT NULL,    -- up to this one it is done
    heal   INTEGER NOT NULL     -- 1: the broken rows too
) STRICT;

-- Which jobs are waited for, and by which? A hold has no job.
CREATE VIEW dependencies AS
SELECT c.id AS job, s.state, p.id AS after,
       CASE d.ending WHEN 1 THEN 'succeeded' WHEN 2 THEN 'failed' WHEN 3 THEN 'finished' ELSE 'hold' END AS ending,
       CASE d.broken WHEN 0 THEN 'open' ELSE 'broken' END AS waits, t.state AS after_state
FROM deps d
JOIN jobs c ON c.n = d.child
JOIN states s ON s.n = c.state
LEFT JOIN jobs p ON p.n = d.parent
LEFT JOIN states t ON t.n = p.state;
