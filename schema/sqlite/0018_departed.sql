-- How many jobs have left the ledger, so that its counts as of a moment are those of all jobs.
CREATE TABLE departed (
    queue INTEGER NOT NULL, -- names.n; 0: jobs that left before removed events named their queues
    state INTEGER NOT NULL, -- states.n, as they ended; 0: as queue
    jobs  INTEGER NOT NULL,
    PRIMARY KEY (queue, state)
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO departed
SELECT 0, 0, sum(data ->> 'jobs') FROM events
WHERE kind = 33 AND kind > 5 AND pos > coalesce((SELECT max(pos) FROM events WHERE kind = 19 AND kind > 5), 0)
HAVING sum(data ->> 'jobs') > 0;
