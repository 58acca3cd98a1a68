-- A checkpoint is handed out to a place, so that each place gets its own, and seals are taken in from another copy of the
-- ledger. So a seal need not be of as many events as the one before it. The event of sealing says that seal 1 came with it.
ALTER TABLE seals ADD COLUMN place TEXT; -- to which the checkpoint was handed out; null: none was, or an older program did it

DROP TRIGGER seals_no_gap;
CREATE TRIGGER seals_no_gap AFTER INSERT ON seals
WHEN NEW.n <> 1 AND NOT EXISTS (SELECT 1 FROM seals WHERE n = NEW.n - 1)
BEGIN SELECT raise(ABORT, 'seals are dense: the seal before this one is missing'); END;
