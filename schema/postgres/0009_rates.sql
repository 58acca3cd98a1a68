-- How many jobs of a queue may start within a time.
CREATE TABLE limits_before AS SELECT * FROM limits;
DROP TABLE limits;
CREATE TABLE limits (
    queue      bigint NOT NULL, -- names.n
    grp        text COLLATE "C" NOT NULL, -- '': the queue as a whole
    running    bigint,          -- how many jobs may be claimed or running at once
    per_group  bigint,          -- how many of each group
    rate       bigint,          -- how many may start within rate_per
    rate_per   bigint,          -- microseconds
    burst      bigint,          -- how many of them at once; null: one
    used_until bigint,          -- the starts so far use up the rate until then; null: none since the rate was set
    since      bigint NOT NULL,
    actor      bigint NOT NULL, -- names.n
    reason     text,
    PRIMARY KEY (queue, grp)
);
INSERT INTO limits SELECT queue, grp, running, per_group, null, null, null, null, since, actor, reason FROM limits_before;
DROP TABLE limits_before;
