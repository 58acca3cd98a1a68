-- Evidence: the hash tree over the events, and what was said of it.
INSERT INTO kinds VALUES (20, 'sealing');

-- The hashes of the whole blocks of 256 events, as RFC 6962 computes them. Block n has the events from pos 256 * n + 1
-- on. They follow from the events, so two processes that add the same block write the same bytes.
CREATE TABLE blocks (
    n    bigint PRIMARY KEY, -- from 0, without gaps
    hash bytea NOT NULL CHECK (length(hash) = 32)
) WITH (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 20000);

-- The roots of the tree that were said, and the checkpoints that were handed out.
CREATE TABLE seals (
    n    bigint PRIMARY KEY, -- from 1, without gaps
    size bigint NOT NULL,    -- how many events are below the root
    at   bigint NOT NULL,    -- UTC, microseconds since 1970
    root bytea NOT NULL CHECK (length(root) = 32),
    note text                -- the text of the checkpoint that was handed out; null: none was
);

-- As only_append does for events: the primary key does the rest.
CREATE FUNCTION only_append_blocks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF (SELECT max(a.n) - min(a.n) + 1 <> count(*)
            OR min(a.n) <> 0 AND NOT EXISTS (SELECT FROM blocks WHERE n = min(a.n) - 1) FROM added a) THEN
        RAISE EXCEPTION 'blocks are append-only: the next one has the next number'
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION only_append_seals() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM added a WHERE a.n <> 1
            AND NOT EXISTS (SELECT FROM seals s WHERE s.n = a.n - 1 AND s.size <= a.size)) THEN
        RAISE EXCEPTION 'seals are append-only: the next one has the next number, and is not smaller'
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER blocks_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON blocks
    EXECUTE FUNCTION refuse('blocks are append-only');
CREATE TRIGGER blocks_only_append AFTER INSERT ON blocks REFERENCING NEW TABLE AS added
    EXECUTE FUNCTION only_append_blocks();
CREATE TRIGGER seals_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON seals
    EXECUTE FUNCTION refuse('seals are append-only');
CREATE TRIGGER seals_only_append AFTER INSERT ON seals REFERENCING NEW TABLE AS added
    EXECUTE FUNCTION only_append_seals();
ALTER TABLE blocks
    ENABLE ALWAYS TRIGGER blocks_no_change, ENABLE ALWAYS TRIGGER blocks_only_append;
ALTER TABLE seals
    ENABLE ALWAYS TRIGGER seals_no_change, ENABLE ALWAYS TRIGGER seals_only_append;
