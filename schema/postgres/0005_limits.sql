-- What bounds the claims from a queue.
INSERT INTO kinds VALUES (22, 'queue_limited');

-- What the last queue_limited of each queue, or of one group of it, says. Null: no such limit.
CREATE TABLE limits (
    queue     bigint NOT NULL,           -- names.n
    grp       text COLLATE "C" NOT NULL, -- '': the queue as a whole
    running   bigint,                    -- how many jobs may be claimed or running at once
    since     bigint NOT NULL,
    actor     bigint NOT NULL,           -- names.n
    reason    text,
    PRIMARY KEY (queue, grp)
);
