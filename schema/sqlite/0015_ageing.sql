-- The wait that counts as much as one more of priority in a queue.
CREATE TABLE limits_before AS SELECT * FROM limits;
DROP TABLE limits;
CREATE TABLE limits (
    queue          INTEGER NOT NULL, -- names.n
    grp            TEXT NOT NULL, -- '': the queue as a whole; else an exception for that group
    running        INTEGER,          -- how many jobs may be claimed or running at once
    per_group      INTEGER,          -- how many of each group
    rate           INTEGER,          -- how many may start within rate_per
    rate_per       INTEGER,          -- microseconds
    burst          INTEGER,          -- how many of them at once; null: one
    used_until     INTEGER,          -- the starts so far use up the rate until then; null: none since the rate was set
    group_rate     INTEGER,          -- how many of each group may start within group_rate_per
    group_rate_per INTEGER,          -- microseconds
    group_burst    INTEGER,          -- how many of them at once; null: one
    ageing         INTEGER,          -- the wait that counts as much as one more of priority, in microseconds; null: none does
    since          INTEGER NOT NULL,
    actor          INTEGER NOT NULL, -- names.n
    reason         TEXT,
    PRIMARY KEY (queue, grp)
) STRICT, WITHOUT ROWID;
INSERT INTO limits
SELECT queue, grp, running, per_group, rate, rate_per, burst, used_until,
    group_rate, group_rate_per, group_burst, null, since, actor, reason
FROM limits_before;
DROP TABLE limits_before;
