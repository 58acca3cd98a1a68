-- What is asked about a long ledger should not cost all of it.

-- What the events up to one of them add up to. A cache, made from events alone: a row may be missing, and never changes.
CREATE TABLE keyframes (
    pos    INTEGER PRIMARY KEY, -- of the last event that counts
    ended  TEXT NOT NULL,       -- JSON: by queue, how many jobs had succeeded, failed and been cancelled
    queued BLOB NOT NULL,       -- the numbers of the queued jobs: the first, then differences, each a base 128 varint
    held   BLOB NOT NULL        -- those of the claimed and running jobs
) STRICT;

-- Which writes were refused, and what else happens to few jobs? Without the kinds that every job has, and failures.
CREATE INDEX rare_events ON events (kind) WHERE kind > 5;
