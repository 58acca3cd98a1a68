-- Who may do what in a ledger on PostgreSQL. No migration: an administrator runs it by hand, and again after each
-- migration, for what that has added.
--
--     psql -v schema=jobledger -f roles.sql DATABASE
--
-- These roles cannot log in. They are granted to users who do:
--
--     GRANT jobledger_owner TO deploy;     -- migrates and rebuilds; can do away with every guard, so nothing runs as it
--     GRANT jobledger_worker TO app;       -- works, enqueues, sweeps, pauses, erases
--     GRANT jobledger_archiver TO cron;    -- a worker that also removes what is archived
--     GRANT jobledger_auditor TO ada;      -- reads, payloads and lease tokens too, and changes nothing
--     GRANT jobledger_enqueuer TO shop;    -- asks for jobs, by rows of the inbox, and can read nothing
--
-- A user who has to migrate says SET ROLE jobledger_owner first (ALTER ROLE deploy SET role = jobledger_owner does so
-- at each login), so that what is created belongs to the role and not to one of its members.

\set ON_ERROR_STOP on
\if :{?schema}
\else
    \set schema jobledger
\endif

BEGIN;

SELECT format('CREATE ROLE %I NOLOGIN', name)
FROM unnest(ARRAY['jobledger_owner', 'jobledger_worker', 'jobledger_archiver', 'jobledger_auditor',
    'jobledger_enqueuer']) AS name
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = name) \gexec

-- Who owned the ledger so far remains one of its owners.
SELECT format('GRANT jobledger_owner TO %I', rolname)
FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
WHERE nspname = :'schema' AND NOT rolsuper AND rolname <> 'jobledger_owner' \gexec

-- The owner has all. Indexes and the sequences of identity columns follow their tables.
ALTER SCHEMA :"schema" OWNER TO jobledger_owner;
SELECT format('ALTER %s %I.%I OWNER TO jobledger_owner',
    CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, :'schema', relname)
FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace(quote_ident(:'schema')) AND relkind IN ('r', 'v') \gexec
SELECT format('ALTER FUNCTION %s OWNER TO jobledger_owner', oid::regprocedure)
FROM pg_catalog.pg_proc WHERE pronamespace = to_regnamespace(quote_ident(:'schema')) \gexec

-- What was granted before, by this file or by hand, is taken back first.
REVOKE ALL ON SCHEMA :"schema" FROM PUBLIC, jobledger_worker, jobledger_archiver, jobledger_auditor, jobledger_enqueuer;
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM PUBLIC, jobledger_worker, jobledger_archiver, jobledger_auditor,
    jobledger_enqueuer;
REVOKE ALL (id, job, payload) ON :"schema".inbox FROM jobledger_enqueuer;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, jobledger_worker, jobledger_archiver, jobledger_auditor,
    jobledger_enqueuer;

GRANT USAGE ON SCHEMA :"schema" TO jobledger_worker, jobledger_auditor, jobledger_enqueuer;
GRANT SELECT ON ALL TABLES IN SCHEMA :"schema" TO jobledger_worker, jobledger_auditor;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA :"schema" TO jobledger_worker, jobledger_auditor; -- the views call them

-- The guards refuse to change an event to the owner too; a worker may not even try.
GRANT INSERT ON :"schema".events, :"schema".names, :"schema".workers, :"schema".bodies, :"schema".jobs, :"schema".queues,
    :"schema".limits, :"schema".group_heads, :"schema".group_rates, :"schema".presence, :"schema".keyframes, :"schema".blocks, :"schema".seals, :"schema".timetable,
    :"schema".deps, :"schema".resolving, :"schema".ends, :"schema".delayed, :"schema".segments TO jobledger_worker;
GRANT UPDATE ON :"schema".jobs, :"schema".queues, :"schema".limits, :"schema".group_heads, :"schema".group_rates, :"schema".presence, :"schema".keyframes,
    :"schema".timetable, :"schema".deps, :"schema".resolving, :"schema".ends, :"schema".delayed TO jobledger_worker;
GRANT UPDATE ON :"schema".write_lock TO jobledger_worker; -- who may change it may lock it, as every writer does
GRANT DELETE ON :"schema".bodies, :"schema".presence, :"schema".timetable, :"schema".group_heads, :"schema".group_rates,
    :"schema".deps, :"schema".resolving, :"schema".ends, :"schema".delayed TO jobledger_worker; -- erasing; processes that have ended; schedules that are removed; groups without queued jobs; rates that change

GRANT UPDATE (salt) ON :"schema".past TO jobledger_worker; -- erasing, of what is archived

-- The inbox: a worker moves its rows; who enqueues sets neither the order, nor the time, nor who asks.
GRANT INSERT, DELETE ON :"schema".inbox, :"schema".inbox_refused TO jobledger_worker;
GRANT INSERT (id, job, payload) ON :"schema".inbox TO jobledger_enqueuer;

-- What is archived leaves: the guards let no other event go, and a row of jobs or a keyframe only after the events.
GRANT jobledger_worker TO jobledger_archiver;
GRANT DELETE ON :"schema".events, :"schema".jobs, :"schema".keyframes TO jobledger_archiver;
GRANT INSERT ON :"schema".past TO jobledger_archiver;
GRANT INSERT, UPDATE ON :"schema".departed TO jobledger_archiver;

COMMIT;
