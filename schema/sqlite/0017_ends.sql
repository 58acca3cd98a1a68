-- What was done for a job may go on after the job has been cancelled, until its command has ended.

-- The claims that were cancelled and whose commands may still run. The events say so too; these rows find them. One that
-- is over may stay for a while.
CREATE TABLE ends (
    job     INTEGER PRIMARY KEY, -- jobs.n
    attempt INTEGER NOT NULL,
    until   INTEGER NOT NULL     -- the end of the claim's lease: by then the command has ended
) STRICT;

-- The jobs that waited for one of those to end in that way, and are not to begin before its command has ended.
CREATE TABLE delayed (
    child  INTEGER NOT NULL, -- jobs.n of the job that is delayed
    parent INTEGER NOT NULL, -- jobs.n of the job that was waited for
    until  INTEGER NOT NULL, -- as in ends
    run_at INTEGER,          -- when it was to run otherwise; null: it still waits for others
    PRIMARY KEY (child, parent)
) STRICT, WITHOUT ROWID;
CREATE INDEX delayed_by ON delayed (parent);
