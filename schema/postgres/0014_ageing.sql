-- The wait that counts as much as one more of priority in a queue.
CREATE TABLE limits_before AS SELECT * FROM limits;
DROP TABLE limits;
CREATE TABLE limits (
    queue          bigint NOT NULL, -- names.n
    grp            text COLLATE "C" NOT NULL, -- '': the queue as a whole; else an exception for that group
    running        bigint,          -- how many jobs may be claimed or running at once
    per_group      bigint,          -- how many of each group
    rate           bigint,          -- how many may start within rate_per
    rate_per       bigint,          -- microseconds
    burst          bigint,          -- how many of them at once; null: one
    used_until     bigint,          -- the starts so far use up the rate until then; null: none since the rate was set
    group_rate     bigint,          -- how many of each group may start within group_rate_per
    group_rate_per bigint,          -- microseconds
    group_burst    bigint,          -- how many of them at once; null: one
    ageing         bigint,          -- the wait that counts as much as one more of priority, in microseconds; null: none does
    since          bigint NOT NULL,
    actor          bigint NOT NULL, -- names.n
    reason         text,
    PRIMARY KEY (queue, grp)
);
INSERT INTO limits
SELECT queue, grp, running, per_group, rate, rate_per, burst, used_until,
    group_rate, group_rate_per, group_burst, null, since, actor, reason
FROM limits_before;
DROP TABLE limits_before;
