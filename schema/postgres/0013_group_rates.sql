-- How many jobs of each group of a queue may start within a time.
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
    since          bigint NOT NULL,
    actor          bigint NOT NULL, -- names.n
    reason         text,
    PRIMARY KEY (queue, grp)
);
INSERT INTO limits
SELECT queue, grp, running, per_group, rate, rate_per, burst, used_until, null, null, null, since, actor, reason
FROM limits_before;
DROP TABLE limits_before;

-- A row for each group that started a job since its rate was set. Derived from the claims.
CREATE TABLE group_rates (
    queue      bigint NOT NULL, -- names.n
    grp        text COLLATE "C" NOT NULL,
    used_until bigint NOT NULL, -- the starts so far use up the rate until then
    PRIMARY KEY (queue, grp)
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
