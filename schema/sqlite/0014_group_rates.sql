-- How many jobs of each group of a queue may start within a time.
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
    since          INTEGER NOT NULL,
    actor          INTEGER NOT NULL, -- names.n
    reason         TEXT,
    PRIMARY KEY (queue, grp)
) STRICT, WITHOUT ROWID;
INSERT INTO limits
SELECT queue, grp, running, per_group, rate, rate_per, burst, used_until, null, null, null, since, actor, reason
FROM limits_before;
DROP TABLE limits_before;

-- A row for each group that started a job since its rate was set. Derived from the claims.
CREATE TABLE group_rates (
    queue      INTEGER NOT NULL, -- names.n
    grp        TEXT NOT NULL,
    used_until INTEGER NOT NULL, -- the starts so far use up the rate until then
    PRIMARY KEY (queue, grp)
) STRICT, WITHOUT ROWID;
