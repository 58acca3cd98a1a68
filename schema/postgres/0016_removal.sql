-- What is archived may leave the ledger's tables.
INSERT INTO kinds VALUES (33, 'removed'), (34, 'archive_policy');
UPDATE compatibility SET readable_from = 16, writable_from = 16;

-- The ranges that archived events name. They follow on each other.
CREATE TABLE segments (
    hi  bigint PRIMARY KEY, -- the last event of the range
    lo  bigint NOT NULL,    -- the one before its first
    pos bigint NOT NULL     -- of the event archived
);
INSERT INTO segments
SELECT (data ->> 'hi')::bigint, coalesce((data ->> 'lo')::bigint, 0), pos FROM events WHERE kind = 21 AND kind > 5
ON CONFLICT DO NOTHING;

-- The keys of jobs that have left: each stays its job's own for ever.
CREATE TABLE past (
    queue  bigint NOT NULL,           -- names.n
    key    text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL, -- of the job, a ULID
    state  bigint NOT NULL,           -- states.n, as it ended
    digest bytea NOT NULL,            -- of its payload, as its event has it
    salt   bytea,                     -- of the digest; null: the payload was erased
    PRIMARY KEY (queue, key)
);

CREATE FUNCTION only_append_segments() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM added a WHERE a.hi <= a.lo OR a.hi >= a.pos
            OR a.lo <> (SELECT coalesce(max(s.hi), 0) FROM segments s WHERE s.hi < a.hi)
            OR EXISTS (SELECT FROM segments s WHERE s.hi > a.hi)
            OR NOT EXISTS (SELECT FROM events e WHERE e.pos = a.pos AND e.kind = 21
                AND (e.data ->> 'hi')::bigint = a.hi)) THEN
        RAISE EXCEPTION 'segments are append-only: an archived event names the next one'
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION only_forget_salt() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM after_it a WHERE a.salt IS NOT NULL)
            OR EXISTS (SELECT queue, key, id, state, digest FROM after_it EXCEPT SELECT queue, key, id, state, digest FROM before_it) THEN
        RAISE EXCEPTION 'past is append-only: UPDATE refused'
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER segments_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON segments
    EXECUTE FUNCTION refuse('segments are append-only');
CREATE TRIGGER segments_only_append AFTER INSERT ON segments REFERENCING NEW TABLE AS added
    EXECUTE FUNCTION only_append_segments();
CREATE TRIGGER past_no_removal BEFORE DELETE OR TRUNCATE ON past
    EXECUTE FUNCTION refuse('past is append-only');
CREATE TRIGGER past_no_update AFTER UPDATE ON past REFERENCING OLD TABLE AS before_it NEW TABLE AS after_it
    EXECUTE FUNCTION only_forget_salt();

-- An event leaves only as part of a segment, and only with its job: what concerns no job stays.
CREATE FUNCTION only_archived() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM gone g WHERE g.job IS NULL OR g.pos > (SELECT coalesce(max(hi), 0) FROM segments)) THEN
        RAISE EXCEPTION 'events are append-only: DELETE refused'
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;
DROP TRIGGER events_no_delete ON events;
CREATE TRIGGER events_no_delete AFTER DELETE ON events REFERENCING OLD TABLE AS gone
    EXECUTE FUNCTION only_archived();

-- As before, and nothing comes back into a range that is archived.
DROP TRIGGER events_only_append ON events;
DROP FUNCTION only_append();
CREATE FUNCTION only_append() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
    IF (SELECT max(a.pos) - min(a.pos) + 1 <> count(*)
            OR min(a.pos) <> 1 AND NOT EXISTS (SELECT FROM events WHERE pos = min(a.pos) - 1)
            OR min(a.pos) <= (SELECT coalesce(max(hi), 0) FROM segments) FROM added a) THEN
        RAISE EXCEPTION 'events are append-only: the next one has the next pos'
            USING ERRCODE = 'JL001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER events_only_append AFTER INSERT ON events REFERENCING NEW TABLE AS added
    EXECUTE FUNCTION only_append();

ALTER TABLE segments
    ENABLE ALWAYS TRIGGER segments_no_change, ENABLE ALWAYS TRIGGER segments_only_append;
ALTER TABLE past ENABLE ALWAYS TRIGGER past_no_removal, ENABLE ALWAYS TRIGGER past_no_update;
ALTER TABLE events ENABLE ALWAYS TRIGGER events_no_delete, ENABLE ALWAYS TRIGGER events_only_append;

-- A program of before takes a removed event for a lost one.
UPDATE compatibility SET readable_from = 16, writable_from = 16;
-- Who could read or append before can do so now. To remove takes a right that is given by roles.sql.
DO $$
DECLARE
    who record;
BEGIN
    FOR who IN
        SELECT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS name, g.privilege_type AS may
        FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) g LEFT JOIN pg_catalog.pg_roles r ON r.oid = g.grantee
        WHERE c.oid = 'events'::regclass AND g.grantee <> c.relowner AND g.privilege_type IN ('SELECT', 'INSERT')
    LOOP
        IF who.may = 'SELECT' THEN
            EXECUTE 'GRANT SELECT ON segments, past TO ' || who.name;
        ELSE
            EXECUTE 'GRANT INSERT ON segments TO ' || who.name;
        END IF;
    END LOOP;
END $$;
