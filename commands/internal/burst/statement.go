package burst

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/claims"
)

// parameters are those of the statement, in their order. The last one is that of results.
var parameters = []string{
	"covers",                  // the pos up to which the cache of lanes knows the events
	"queue",                   // its number
	"lane",                    // its text
	"priority",                // of the jobs in it
	"runAt",                   // no job of it is before this time
	"id",                      // and this id
	"limit",                   // how many jobs to take
	"now",                     // the time; null: the server's
	"actor",                   // its number
	"worker",                  // its number
	"lease",                   // in microseconds
	"tokens",                  // of the claims
	"dataBefore", "dataAfter", // the data of claimed up to the end of its lease, and after it; null: none
	"endJobs", "endSeqs", "endAttempts", "endStates", "endTokens", // arrays: of the jobs that end
	"endData", "endDigests", // or empty: none has any
	"endResults",
}

// statement ends jobs and claims others. Everything that it decides stands in checked: it is undone unless
// that is one. Setting up its parts takes the server longer than the rows of a few jobs, so it has few parts,
// and all are used.
var statement = sync.OnceValue(func() string { return compose("", "") })

// statementWithResults is the statement where an end has a result.
var statementWithResults = sync.OnceValue(func() string {
	return compose(", ?endResults::bytea[]", `
stored AS (
    INSERT INTO bodies (pos, salt, body)
    SELECT m.pos, NULL, m.result FROM moves m WHERE m.result IS NOT NULL),`)
})

// moves are the jobs that end, and those that are claimed, which have a new token. The columns of a job that
// is queued and plain, and are not named in moved, are null already.
const text = `WITH head AS MATERIALIZED (
    SELECT t.pos, t.at,
        coalesce(?now::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
    FROM (SELECT pos, at FROM events ORDER BY pos DESC LIMIT 1) t),
since AS MATERIALIZED (
    SELECT count(*) AS n, min(j.run_at) FILTER (WHERE j.lane = ?lane::text) AS run_at,
        bool_and(j.n IS NOT NULL AND (j.queue <> ?queue::int8 OR j.lane IS NULL OR j.lane = ?lane::text))
            AS known
    FROM events e LEFT JOIN jobs j ON j.n = e.job
    WHERE e.pos > ?covers::int8 AND (e.to_state = {state:queued} OR e.kind IN ({kinds:ofAllJobs}))),
taken AS MATERIALIZED (
    SELECT {columns}, row_number() OVER (ORDER BY j.run_at, j.id) AS o,
        (j.state = {state:queued} AND j.queue = ?queue::int8 AND j.priority = ?priority::int8
        AND num_nonnulls(j.max_runtime, j.worker, j.lease_token, j.claimed_at, j.heartbeat_at,
            j.lease_expires_at, j.end_by, j.finished_at) = 0
        AND octet_length(j.id) = 26 AND j.id ~ '^[0-7][0-9A-HJKMNP-TV-Z]+$'
        AND CASE WHEN j.more IS NULL THEN true WHEN octet_length(j.more::text) > 2000 THEN false
            ELSE j.more::text ~ {tagsOnly} END) IS TRUE AS plain
    FROM jobs j
    WHERE j.lane = ?lane::text AND (j.run_at, j.id) >= (
            (SELECT least(run_at, ?runAt::int8) FROM since),
            (SELECT CASE WHEN run_at <= ?runAt::int8 THEN '' ELSE ?id::text END COLLATE "C" FROM since))
        AND j.run_at <= (SELECT now FROM head)
    ORDER BY j.run_at, j.id LIMIT ?limit::int8),
moves AS MATERIALIZED (
    SELECT h.pos + m.o AS pos, h.now, m.* FROM head h CROSS JOIN (
        SELECT v.* FROM unnest(?endJobs::int8[], ?endSeqs::int8[], ?endStates::int8[], ?endTokens::text[],
            ?endAttempts::int8[], NULL::text[], ?endDigests::bytea[], ?endData::text[]{results})
            WITH ORDINALITY AS v(n, seq, state, held, attempt, token, digest, data{result}, o)
        UNION ALL
        SELECT t.n, t.seq, {state:queued}, NULL, t.attempt + 1, (?tokens::text[])[t.o], NULL, NULL{null},
            cardinality(?endJobs::int8[]) + t.o
        FROM taken t) AS m),
moved AS (
    UPDATE jobs j SET seq = m.seq + 1, lane = NULL, end_by = NULL, lease_token = m.token,
        state = CASE WHEN m.token IS NULL THEN {state:succeeded} ELSE {state:claimed} END,
        attempt = CASE WHEN m.token IS NULL THEN j.attempt ELSE m.attempt END,
        worker = CASE WHEN m.token IS NULL THEN j.worker ELSE ?worker::int8 END,
        claimed_at = CASE WHEN m.token IS NULL THEN j.claimed_at ELSE m.now END,
        heartbeat_at = CASE WHEN m.token IS NULL THEN j.heartbeat_at ELSE m.now END,
        lease_expires_at = CASE WHEN m.token IS NOT NULL THEN m.now + ?lease::int8 END,
        finished_at = CASE WHEN m.token IS NULL THEN m.now END,
        error_code = CASE WHEN m.token IS NOT NULL THEN j.error_code END
    FROM moves m
    WHERE j.n = m.n AND j.seq = m.seq AND j.state = m.state AND j.lease_token IS NOT DISTINCT FROM m.held
    RETURNING 1),
appended AS (
    INSERT INTO events (pos, job, seq, kind, at, actor, worker, ulid, attempt, from_state, to_state,
        digest, data)
    SELECT m.pos, m.n, m.seq + 1, CASE WHEN m.token IS NULL THEN {succeeded} ELSE {claimed} END,
        m.now, ?actor::int8, ?worker::int8, m.token, m.attempt, m.state,
        CASE WHEN m.token IS NULL THEN {state:succeeded} ELSE {state:claimed} END, m.digest,
        CASE WHEN m.token IS NULL THEN m.data
            ELSE ?dataBefore::text || (m.now + ?lease::int8) || ?dataAfter::text END::json
    FROM moves m),{stored}
checked AS MATERIALIZED (
    SELECT CASE WHEN coalesce(h.now >= h.at AND h.pos >= ?covers::int8 AND h.pos - ?covers::int8 <= {most}
        AND s.known IS NOT FALSE AND k.plain AND k.size <= 16000
        AND (SELECT count(*) FROM moved) = cardinality(?endJobs::int8[]) + k.n
        AND NOT EXISTS (SELECT FROM deps) AND ?mayWrite, false)
        THEN 1 ELSE give_up('rolled back, to be done in steps: the ledger is not as expected') END AS ok,
        h.pos, h.now, s.n > 0 AS others,
        set_config('jobledger.taken', coalesce(k.jobs::text, '{}'), false)
    FROM since s CROSS JOIN (
        SELECT count(*) AS n, array_agg(t.n) AS jobs, coalesce(bool_and(t.plain), true) AS plain,
            coalesce(sum(octet_length(t.more::text)), 0) AS size
        FROM taken t) AS k LEFT JOIN head h ON true)
SELECT {taken}, c.ok, c.pos, c.now, c.others, t.o FROM checked c LEFT JOIN taken t ON true`

// tagsOnly matches the column more of a job that has tags and nothing else, as it is written.
const tagsOnly = `'^\{"tags":\{("([^"\\]|\\.)*":"([^"\\]|\\.)*"(,(?=")|(?=\})))+\}\}$'`

// compose returns the text with its parameters and its numbers.
func compose(results, stored string) string {
	replace := []string{"{results}", results, "{stored}", stored, "{result}", "", "{null}", ""}
	if results != "" {
		replace = []string{"{results}", results, "{stored}", stored, "{result}", ", result", "{null}", ", NULL"}
	}
	parts := strings.NewReplacer(replace...).Replace(text)
	replace = nil
	for i, name := range parameters {
		replace = append(replace, "?"+name+"::", fmt.Sprintf("?%d::", i+1))
	}
	replace = append(replace, "{most}", strconv.Itoa(claims.MaxMissedEvents), "{tagsOnly}", tagsOnly,
		"{columns}", projection.QueuedColumns,
		"{taken}", strings.ReplaceAll(projection.QueuedColumns, "j.", "t."))
	numbered := event.SQL(strings.NewReplacer(replace...).Replace(parts))
	return strings.Replace(numbered, "?mayWrite", ledger.MayWrite, 1)
}

// checkedColumns is how many columns of the statement's rows come after those of the job.
const checkedColumns = 5

// bodies reads the payloads of the jobs that were taken, after the commit. They may be large, and the lock
// must not be held while a slow client takes them in.
const bodies = `SELECT b.pos, b.salt, b.body FROM bodies b
WHERE b.pos = ANY (current_setting('jobledger.taken')::int8[])`
