-- The rows of a job and the keyframes leave the ledger after the events that they add up to. An older program removes the
-- rows first; and it takes the exit code in the event of a release, an unknown field, for damage.
UPDATE compatibility SET readable_from = 20, writable_from = 20;

-- What would be wrong for anybody is refused to all but the owner of the table, who has to rebuild it.
CREATE FUNCTION only_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (SELECT pg_catalog.pg_has_role(c.relowner, 'USAGE') FROM pg_catalog.pg_class c WHERE c.oid = TG_RELID) THEN
        RAISE EXCEPTION '%: % refused', TG_ARGV[0], TG_OP
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION only_without_events() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM gone g WHERE EXISTS (SELECT FROM events e WHERE e.job = g.n))
            AND NOT (SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = TG_RELID) THEN
        RAISE EXCEPTION 'a job has a row while it has events: DELETE refused'
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION only_outdated() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM gone g
            WHERE g.pos > (SELECT coalesce(max(e.pos), 0) FROM events e WHERE e.kind = 33 AND e.kind > 5))
            AND NOT (SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = TG_RELID) THEN
        RAISE EXCEPTION 'a keyframe stays until jobs leave: DELETE refused'
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER jobs_no_removal AFTER DELETE ON jobs REFERENCING OLD TABLE AS gone
    EXECUTE FUNCTION only_without_events();
CREATE TRIGGER jobs_no_rewrite AFTER UPDATE ON jobs FOR EACH ROW
    WHEN (NEW.seq <= OLD.seq OR NEW.n <> OLD.n OR NEW.id <> OLD.id)
    EXECUTE FUNCTION only_owner('a row of jobs changes with a further event');
CREATE TRIGGER keyframes_no_removal AFTER DELETE ON keyframes REFERENCING OLD TABLE AS gone
    EXECUTE FUNCTION only_outdated();
CREATE TRIGGER keyframes_no_update AFTER UPDATE ON keyframes FOR EACH ROW
    EXECUTE FUNCTION only_owner('keyframes are written once');
ALTER TABLE jobs ENABLE ALWAYS TRIGGER jobs_no_removal, ENABLE ALWAYS TRIGGER jobs_no_rewrite;
ALTER TABLE keyframes ENABLE ALWAYS TRIGGER keyframes_no_removal, ENABLE ALWAYS TRIGGER keyframes_no_update;

-- A statement that finds another state than it expects ends in this way, with all that it did.
CREATE FUNCTION give_up(why text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'jobledger: %', why
        USING ERRCODE = 'JL002', HINT = 'This is not a fault: another transaction came first, and this one is done again.';
END $$;
