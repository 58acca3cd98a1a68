-- What bounds the claims from a queue.
INSERT INTO kinds VALUES (22, 'queue_limited');

-- What the last queue_limited of each queue, or of one group of it, says. Null: no such limit.
CREATE TABLE limits (
    queue     INTEGER NOT NULL, -- names.n
    grp       TEXT NOT NULL,    -- '': the queue as a whole
    running   INTEGER,          -- how many jobs may be claimed or running at once
    since     INTEGER NOT NULL,
    actor     INTEGER NOT NULL, -- names.n
    reason    TEXT,
    PRIMARY KEY (queue, grp)
) STRICT, WITHOUT ROWID;
