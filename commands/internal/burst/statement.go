package burst

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/claims"
)

// parameters are those of the statement, in their order.
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
	"endData", "endDigests", "endResults",
}

// statement ends jobs and claims others. Everything that it decides stands in checked: it is undone unless
// that is one.
var statement = sync.OnceValue(func() string {
	queued, kinds, most := claims.MissedEvents()
	text := `WITH head AS MATERIALIZED (
    SELECT t.pos, t.at, coalesce(?now::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
    FROM (SELECT pos, at FROM events ORDER BY pos DESC LIMIT 1) t),
since AS MATERIALIZED (
    SELECT e.job, j.queue, j.lane, j.run_at, j.id FROM events e LEFT JOIN jobs j ON j.n = e.job
    WHERE e.pos > ?covers::int8 AND (e.to_state = {queued} OR e.kind IN ({kinds}))),
first AS MATERIALIZED (
    SELECT run_at, id FROM (SELECT ?runAt::int8 AS run_at, ?id::text COLLATE "C" AS id
        UNION ALL SELECT run_at, id FROM since WHERE lane = ?lane::text) AS s
    ORDER BY run_at, id LIMIT 1),
taken AS MATERIALIZED (
    SELECT {columns}, row_number() OVER (ORDER BY j.run_at, j.id) AS o,
        j.state = {queued} AND j.queue = ?queue::int8 AND j.priority = ?priority::int8
        AND j.max_runtime IS NULL
        AND j.worker IS NULL AND j.lease_token IS NULL AND j.claimed_at IS NULL AND j.heartbeat_at IS NULL
        AND j.lease_expires_at IS NULL AND j.end_by IS NULL AND j.finished_at IS NULL
        AND CASE WHEN j.more IS NULL THEN true
            WHEN octet_length(j.more::text) > 2000 THEN false
            WHEN json_typeof(j.more) <> 'object' THEN false
            ELSE NOT EXISTS (SELECT FROM json_each(j.more) k WHERE k.key <> 'tags')
                AND json_typeof(j.more -> 'tags') = 'object' AND NOT EXISTS (
                    SELECT FROM json_each(j.more -> 'tags') t WHERE json_typeof(t.value) <> 'string')
            END AS plain
    FROM jobs j
    WHERE j.lane = ?lane::text
        AND (j.run_at, j.id) >= ((SELECT run_at FROM first), (SELECT id FROM first))
        AND j.run_at <= (SELECT now FROM head)
    ORDER BY j.run_at, j.id LIMIT ?limit::int8),
ending AS MATERIALIZED (
    SELECT * FROM unnest(?endJobs::int8[], ?endSeqs::int8[], ?endAttempts::int8[], ?endStates::int8[],
        ?endTokens::text[], ?endData::text[], ?endDigests::bytea[], ?endResults::bytea[])
        WITH ORDINALITY AS v(n, seq, attempt, state, token, data, digest, result, o)),
ended AS (
    UPDATE jobs SET seq = v.seq + 1, state = {succeeded}, lease_token = NULL, lease_expires_at = NULL,
        end_by = NULL, error_code = NULL, finished_at = (SELECT now FROM head)
    FROM ending v
    WHERE jobs.n = v.n AND jobs.seq = v.seq AND jobs.state = v.state AND jobs.lease_token = v.token
    RETURNING 1),
claimed AS (
    UPDATE jobs SET seq = t.seq + 1, state = {claimed}, lane = NULL, attempt = t.attempt + 1,
        worker = ?worker::int8, lease_token = (?tokens::text[])[t.o], claimed_at = (SELECT now FROM head),
        heartbeat_at = (SELECT now FROM head), lease_expires_at = (SELECT now FROM head) + ?lease::int8
    FROM taken t WHERE jobs.n = t.n AND jobs.seq = t.seq
    RETURNING 1),
appended AS (
    INSERT INTO events (pos, job, seq, kind, at, actor, worker, ulid, attempt, from_state, to_state,
        digest, data)
    SELECT h.pos + v.o, v.n, v.seq + 1, {kindSucceeded}, h.now, ?actor::int8, ?worker::int8, NULL,
        v.attempt, v.state, {succeeded}, v.digest, v.data::json FROM head h CROSS JOIN ending v
    UNION ALL
    SELECT h.pos + cardinality(?endJobs::int8[]) + t.o, t.n, t.seq + 1, {kindClaimed}, h.now,
        ?actor::int8, ?worker::int8, (?tokens::text[])[t.o], t.attempt + 1, {queued}, {claimed}, NULL,
        (?dataBefore::text || (h.now + ?lease::int8) || ?dataAfter::text)::json
    FROM head h CROSS JOIN taken t),
stored AS (
    INSERT INTO bodies (pos, salt, body)
    SELECT h.pos + v.o, NULL, v.result FROM head h CROSS JOIN ending v WHERE v.result IS NOT NULL),
checked AS MATERIALIZED (
    SELECT 1 / coalesce(h.now >= h.at AND h.pos >= ?covers::int8 AND h.pos - ?covers::int8 <= {most}
        AND (SELECT count(*) FROM ended) = cardinality(?endJobs::int8[])
        AND (SELECT count(*) FROM claimed) = (SELECT count(*) FROM taken)
        AND NOT EXISTS (SELECT FROM taken t WHERE t.plain IS NOT TRUE)
        AND (SELECT coalesce(sum(octet_length(t.more::text)), 0) FROM taken t) <= 16000
        AND NOT EXISTS (SELECT FROM since s
            WHERE s.job IS NULL OR s.queue = ?queue::int8 AND s.lane <> ?lane::text)
        AND NOT EXISTS (SELECT FROM deps), false)::int::int8 AS ok,
        h.pos, h.now,
        EXISTS (SELECT FROM since s WHERE s.queue <> ?queue::int8 AND s.lane IS NOT NULL) AS others,
        set_config('jobledger.taken', coalesce((SELECT array_agg(t.n)::text FROM taken t), '{}'), false)
    FROM (VALUES (1)) AS one LEFT JOIN head h ON true)
SELECT {taken}, c.ok, c.pos, c.now, c.others, t.o FROM checked c LEFT JOIN taken t ON true`
	var replace []string
	for i, name := range parameters {
		replace = append(replace, "?"+name+"::", fmt.Sprintf("?%d::", i+1))
	}
	for name, n := range map[string]int{"queued": int(queued), "claimed": int(event.ClaimedState),
		"succeeded": int(event.SucceededState), "kindSucceeded": int(event.KindSucceeded),
		"kindClaimed": int(event.KindClaimed), "most": int(most)} {
		replace = append(replace, "{"+name+"}", strconv.Itoa(n))
	}
	replace = append(replace, "{kinds}", kinds, "{columns}", projection.QueuedColumns,
		"{taken}", strings.ReplaceAll(projection.QueuedColumns, "j.", "t."))
	return strings.NewReplacer(replace...).Replace(text)
})

// checkedColumns is how many columns of the statement's rows come after those of the job.
const checkedColumns = 5

// bodies reads the payloads of the jobs that were taken, after the commit. They may be large, and the lock
// must not be held while a slow client takes them in.
const bodies = `SELECT b.pos, b.salt, b.body FROM bodies b
WHERE b.pos = ANY (current_setting('jobledger.taken')::int8[])`
