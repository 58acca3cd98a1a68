-- What is archived may leave the ledger's file.
INSERT INTO kinds VALUES (33, 'removed'), (34, 'archive_policy');

-- The ranges that archived events name. They follow on each other.
CREATE TABLE segments (
    hi  INTEGER PRIMARY KEY, -- the last event of the range
    lo  INTEGER NOT NULL,    -- the one before its first
    pos INTEGER NOT NULL     -- of the event archived
) STRICT;
INSERT OR IGNORE INTO segments
SELECT data ->> 'hi', coalesce(data ->> 'lo', 0), pos FROM events WHERE kind = 21 AND kind > 5 ORDER BY pos;

-- The keys of jobs that have left: each stays its job's own for ever.
CREATE TABLE past (
    queue  INTEGER NOT NULL, -- names.n
    key    TEXT NOT NULL,
    id     TEXT NOT NULL,    -- of the job, a ULID
    state  INTEGER NOT NULL, -- states.n, as it ended
    digest BLOB NOT NULL,    -- of its payload, as its event has it
    salt   BLOB,             -- of the digest; null: the payload was erased
    PRIMARY KEY (queue, key)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER segments_no_update BEFORE UPDATE ON segments
BEGIN SELECT raise(ABORT, 'segments are append-only: UPDATE refused'); END;
CREATE TRIGGER segments_no_delete BEFORE DELETE ON segments
BEGIN SELECT raise(ABORT, 'segments are append-only: DELETE refused'); END;
CREATE TRIGGER segments_only_append BEFORE INSERT ON segments
WHEN NEW.hi <= NEW.lo OR NEW.hi >= NEW.pos OR NEW.lo <> coalesce((SELECT max(hi) FROM segments), 0)
  OR NOT EXISTS (SELECT 1 FROM events WHERE pos = NEW.pos AND kind = 21 AND data ->> 'hi' = NEW.hi)
BEGIN SELECT raise(ABORT, 'segments are append-only: an archived event names the next one'); END;
CREATE TRIGGER past_no_update BEFORE UPDATE ON past
WHEN NEW.salt IS NOT NULL OR NEW.queue <> OLD.queue OR NEW.key <> OLD.key OR NEW.id <> OLD.id OR NEW.state <> OLD.state
  OR NEW.digest <> OLD.digest
BEGIN SELECT raise(ABORT, 'past is append-only: UPDATE refused'); END;
CREATE TRIGGER past_no_delete BEFORE DELETE ON past
BEGIN SELECT raise(ABORT, 'past is append-only: DELETE refused'); END;
CREATE TRIGGER past_no_replace BEFORE INSERT ON past
WHEN EXISTS (SELECT 1 FROM past WHERE queue = NEW.queue AND key = NEW.key)
BEGIN SELECT raise(ABORT, 'past is append-only: this key is taken'); END;

-- An event leaves only as part of a segment, and only with its job: what concerns no job stays.
DROP TRIGGER events_no_delete;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
WHEN OLD.job IS NULL OR OLD.pos > coalesce((SELECT max(hi) FROM segments), 0)
BEGIN SELECT raise(ABORT, 'events are append-only: DELETE refused'); END;
