-- A checkpoint is handed out to a place, so that each place gets its own, and seals are taken in from another copy of the
-- ledger. So a seal need not be of as many events as the one before it. The event of sealing says that seal 1 came with it:
-- an older program takes that unknown field for damage, and a smaller seal for a finding.
UPDATE compatibility SET readable_from = 22, writable_from = 22;
ALTER TABLE seals ADD COLUMN place text; -- to which the checkpoint was handed out; null: none was, or an older program did it

DROP TRIGGER seals_only_append ON seals;
DROP FUNCTION only_append_seals();
CREATE FUNCTION only_append_seals() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM added a WHERE a.n <> 1 AND NOT EXISTS (SELECT FROM seals s WHERE s.n = a.n - 1)) THEN
        RAISE EXCEPTION 'seals are append-only: the next one has the next number'
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER seals_only_append AFTER INSERT ON seals REFERENCING NEW TABLE AS added
    EXECUTE FUNCTION only_append_seals();
ALTER TABLE seals ENABLE ALWAYS TRIGGER seals_only_append;
