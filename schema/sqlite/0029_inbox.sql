-- Jobs that programs ask for within transactions of their own, in this same file. A claim or a sweep takes the rows out and
-- enqueues their jobs, in one transaction. What a row holds is not trusted before that. The tables are not evidence.
CREATE TABLE inbox (
    n       INTEGER PRIMARY KEY,  -- the order in which the jobs are enqueued
    id      TEXT NOT NULL CHECK (length(id) = 26), -- of the job: a ULID
    job     TEXT NOT NULL CHECK (length(CAST(job AS BLOB)) <= 131072), -- JSON: queue, and what else it is to have
    payload BLOB CHECK (length(payload) <= 1048576),
    at      INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)), -- when it was asked for
    role    TEXT NOT NULL DEFAULT '' -- empty: a file knows no roles
) STRICT;
CREATE TABLE inbox_refused (
    n          INTEGER PRIMARY KEY, -- the order in which they were refused
    id         TEXT NOT NULL,
    job        TEXT NOT NULL,
    payload    BLOB,
    at         INTEGER NOT NULL,
    role       TEXT NOT NULL,
    refused_at INTEGER NOT NULL,
    why        TEXT NOT NULL
) STRICT;
