-- Evidence: the hash tree over the events, and what was said of it.
INSERT INTO kinds VALUES (20, 'sealing');

-- The hashes of the whole blocks of 256 events, as RFC 6962 computes them. Block n has the events from pos 256 * n + 1
-- on. They follow from the events, so two processes that add the same block write the same bytes.
CREATE TABLE blocks (
    n    INTEGER PRIMARY KEY, -- from 0, without gaps
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- The roots of the tree that were said, and the checkpoints that were handed out.
CREATE TABLE seals (
    n    INTEGER PRIMARY KEY, -- from 1, without gaps
    size INTEGER NOT NULL,    -- how many events are below the root
    at   INTEGER NOT NULL,    -- UTC, microseconds since 1970
    root BLOB NOT NULL CHECK (length(root) = 32),
    note TEXT                 -- the text of the checkpoint that was handed out; null: none was
) STRICT;

CREATE TRIGGER blocks_no_update BEFORE UPDATE ON blocks
BEGIN SELECT raise(ABORT, 'blocks are append-only: UPDATE refused'); END;
CREATE TRIGGER blocks_no_delete BEFORE DELETE ON blocks
BEGIN SELECT raise(ABORT, 'blocks are append-only: DELETE refused'); END;
CREATE TRIGGER blocks_no_replace BEFORE INSERT ON blocks
WHEN EXISTS (SELECT 1 FROM blocks WHERE n = NEW.n)
BEGIN SELECT raise(ABORT, 'blocks are append-only: this block is taken'); END;
CREATE TRIGGER blocks_no_gap AFTER INSERT ON blocks
WHEN NEW.n <> 0 AND NOT EXISTS (SELECT 1 FROM blocks WHERE n = NEW.n - 1)
BEGIN SELECT raise(ABORT, 'blocks are dense: the block before this one is missing'); END;
CREATE TRIGGER seals_no_update BEFORE UPDATE ON seals
BEGIN SELECT raise(ABORT, 'seals are append-only: UPDATE refused'); END;
CREATE TRIGGER seals_no_delete BEFORE DELETE ON seals
BEGIN SELECT raise(ABORT, 'seals are append-only: DELETE refused'); END;
CREATE TRIGGER seals_no_replace BEFORE INSERT ON seals
WHEN EXISTS (SELECT 1 FROM seals WHERE n = NEW.n)
BEGIN SELECT raise(ABORT, 'seals are append-only: this seal is taken'); END;
CREATE TRIGGER seals_no_gap AFTER INSERT ON seals
WHEN NEW.n <> 1 AND NOT EXISTS (SELECT 1 FROM seals WHERE n = NEW.n - 1 AND size <= NEW.size)
BEGIN SELECT raise(ABORT, 'seals are dense: the seal before this one is missing, or larger'); END;
