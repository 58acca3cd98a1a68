package main

import (
	"database/sql"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/ledgertest"
)

// copiedViews are the public views of a ledger as tables of a database of their own, and what SQL makes of
// them at one position.
type copiedViews struct {
	t  *testing.T
	db *sql.DB

	values map[string]string // what $name stands for in statements
	asked  map[string]selected
}

// selected is what a statement has selected at a moment.
type selected struct {
	columns []string
	rows    [][]string
}

// copyViews copies the views of the ledger at path.
func copyViews(t *testing.T, path string) *copiedViews {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	check(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	v := &copiedViews{t: t, db: db, values: make(map[string]string), asked: make(map[string]selected)}
	v.run(`ATTACH '` + path + `' AS l;
		CREATE TABLE history AS SELECT * FROM l.history;
		CREATE TABLE current AS SELECT * FROM l.current;
		DETACH l;
		CREATE INDEX of_job ON history (job, pos);
		CREATE INDEX of_worker ON history (worker, pos);
		CREATE INDEX of_pos ON history (pos);
		CREATE INDEX of_kind ON history (kind, to_state);
		CREATE TABLE buckets (us integer)`)
	for i := range 27*4 + 1 {
		v.run(fmt.Sprintf("INSERT INTO buckets VALUES (%.0f)", 1e6*math.Pow(2, float64(i)/4-10)))
	}
	return v
}

func (v *copiedViews) run(statements string) {
	v.t.Helper()
	if _, err := v.db.ExecContext(v.t.Context(), v.fill(statements)); err != nil {
		v.t.Fatalf("%v in %s", err, v.fill(statements))
	}
}

// fill replaces each $name of a statement by its value, as a text of SQL.
func (v *copiedViews) fill(statement string) string {
	return dollar.ReplaceAllStringFunc(statement, func(name string) string {
		value, known := v.values[name[1:]]
		if !known {
			return name
		}
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	})
}

// windowEnd is the field of a form that has the end of a window.
var windowEnd = regexp.MustCompile(`name="to" value="([^"]*)"`)

var dollar = regexp.MustCompile(`\$[a-z]+`)

// rows returns what a statement selects. Many texts ask the same: SQL is asked once at a moment.
func (v *copiedViews) rows(statement string) (columns []string, rows [][]string) {
	v.t.Helper()
	filled := v.fill(statement)
	if known, ok := v.asked[filled]; ok {
		return known.columns, known.rows
	}
	defer func() { v.asked[filled] = selected{columns, rows} }()
	found, err := v.db.QueryContext(v.t.Context(), filled)
	if err != nil {
		v.t.Fatalf("%v in %s", err, filled)
	}
	defer found.Close()
	columns, err = found.Columns()
	check(v.t, err)
	for found.Next() {
		cells := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		check(v.t, found.Scan(into...))
		row := make([]string, len(columns))
		for i := range cells {
			row[i] = spelled(v.t, cells[i].String)
		}
		rows = append(rows, row)
	}
	check(v.t, found.Err())
	return columns, rows
}

// one is the only value that a statement selects.
func (v *copiedViews) one(statement string) string {
	v.t.Helper()
	_, rows := v.rows(statement)
	if len(rows) != 1 || len(rows[0]) != 1 {
		v.t.Fatalf("%s selects %v", v.fill(statement), rows)
	}
	return rows[0][0]
}

// spelled replaces ‹form from to›, of two times, by the time in between as pages show it, and ‹form at› by a
// time.
func spelled(t *testing.T, text string) string {
	t.Helper()
	return angled.ReplaceAllStringFunc(text, func(part string) string {
		texts := strings.Fields(strings.Trim(part, "‹›"))
		if texts[0] == "number" {
			n, err := strconv.ParseFloat(texts[1], 64)
			check(t, err)
			if n >= 100 || n == float64(int64(n)) {
				return fmt.Sprintf("%.0f", n)
			}
			return fmt.Sprintf("%.2g", n)
		}
		if texts[0] == "short" || texts[0] == "for" {
			n, err := strconv.ParseFloat(texts[1], 64)
			check(t, err)
			if texts[0] == "for" {
				return words.Roughly(time.Duration(n))
			}
			return shortDuration(n / 1e6)
		}
		if texts[0] == "seconds" {
			n, err := strconv.ParseFloat(texts[1], 64)
			check(t, err)
			return words.Duration(time.Duration(n * float64(time.Second)))
		}
		var at []time.Time
		for _, word := range texts[1:] {
			one, err := time.Parse(time.RFC3339, word)
			check(t, err)
			at = append(at, one)
		}
		switch texts[0] {
		case "roughly":
			return words.Roughly(max(0, at[1].Sub(at[0])))
		case "briefly":
			return words.Briefly(at[1].Sub(at[0]))
		case "gap":
			return words.Gap(at[1].Sub(at[0]))
		case "millis":
			return words.Millis(at[0].UTC())
		case "time":
			return words.Time(at[0].UTC())
		case "clock":
			return at[0].UTC().Format("15:04:05")
		case "day":
			return at[0].UTC().Format("01-02 15:04:05")
		case "date":
			return at[0].UTC().Format("2006-01-02 15:04:05")
		}
		t.Fatalf("no form %s", part)
		return ""
	})
}

// shortDuration is how the overview shows seconds: two digits below a minute.
func shortDuration(s float64) string {
	switch {
	case s >= 60:
		return words.Roughly(time.Duration(s * float64(time.Second)))
	case s >= 9.95:
		return fmt.Sprintf("%.0fs", s)
	case s >= 1:
		return fmt.Sprintf("%.1fs", s)
	case s >= .00995:
		return fmt.Sprintf("%.0fms", s*1000)
	}
	return fmt.Sprintf("%.1fms", s*1000)
}

var angled = regexp.MustCompile(`‹[^›]*›`)

// setMoment makes tables of what the views say of pos, looked at at now: past has the events, made the jobs,
// claims the claims, and processes the workers. Pages about a window show the six hours up to end.
func (v *copiedViews) setMoment(pos string, now, end time.Time) {
	v.t.Helper()
	begin, moment := end.Add(-6*time.Hour), "past"
	if now.Equal(morning) {
		moment = "now"
	}
	v.values = map[string]string{"pos": pos, "now": words.JSONTime(now),
		"hour": words.JSONTime(now.Add(-time.Hour)), "tail": v.one("SELECT max(pos) FROM history"), "name": "",
		"from": words.JSONTime(begin), "start": fmt.Sprint(begin.UnixMicro()), "end": words.JSONTime(end),
		"moment": moment}
	minute := now.Truncate(time.Minute)
	for name, back := range map[string]int{"rate": 10, "wait": 60, "steps": 359} {
		v.values[name] = fmt.Sprint(minute.Add(-time.Duration(back) * time.Minute).UnixMicro())
	}
	v.values["micros"] = fmt.Sprint(now.UnixMicro())
	clear(v.asked)
	v.run(`DROP TABLE IF EXISTS past; DROP TABLE IF EXISTS made; DROP TABLE IF EXISTS claims;
		DROP TABLE IF EXISTS processes;
		CREATE TABLE past AS SELECT *, CAST(strftime('%s', at) AS integer) * 1000000 + CAST(substr(at, 21, 6) AS
		integer) AS us FROM history WHERE pos <= CAST($pos AS integer);
		CREATE INDEX past_job ON past (job, pos);
		CREATE INDEX past_pos ON past (pos);
		CREATE INDEX past_kind ON past (kind, at);
		CREATE TABLE made AS SELECT e.job, e.data ->> 'queue' AS queue, l.to_state AS state, l.at AS since, l.pos
		AS last, (SELECT coalesce(r.data ->> 'retry_at', r.data ->> 'run_at', r.at) FROM past r WHERE r.job =
		e.job AND r.kind IN ('enqueued', 'retried', 'released', 'failed', 'reclaimed', 'rescheduled') ORDER BY
		r.pos DESC LIMIT 1) AS run_at, (SELECT count(*) FROM past f WHERE f.job = e.job AND f.kind IN ('failed',
		'reclaimed') AND f.pos > coalesce((SELECT max(pos) FROM past r WHERE r.job = e.job AND r.kind =
		'retried'), 0)) AS failures, e.data ->> 'max_attempts' AS max_attempts, e.data ->> 'key' AS key, e.at AS
		enqueued FROM past e JOIN past l ON l.job = e.job AND l.pos = (SELECT max(pos) FROM past m WHERE m.job =
		e.job AND m.to_state IS NOT NULL) WHERE e.kind = 'enqueued';
		CREATE TABLE claims AS SELECT c.pos, c.job, c.attempt, c.at AS claimed_at, c.worker, t.queue, c.data ->>
		'boot' AS boot, c.data ->> 'host' AS host, c.data ->> 'pid' AS pid, c.data ->> 'version' AS version, z.pos
		AS end_pos, z.at AS ended_at, c.us, z.us AS end_us, z.kind AS outcome, z.data ->> 'exit_code' AS
		exit_code, z.data ->> 'signal' AS signal, (SELECT max(h.at) FROM past h WHERE h.job = c.job AND h.attempt
		= c.attempt AND h.kind = 'heartbeat') AS beat, (SELECT h.data ->> 'lease_until' FROM past h WHERE h.job =
		c.job AND h.attempt = c.attempt AND h.kind IN ('claimed', 'heartbeat') ORDER BY h.pos DESC LIMIT 1) AS
		lease_until FROM past c JOIN made t ON t.job = c.job LEFT JOIN past z ON z.job = c.job AND z.pos = (SELECT
		min(x.pos) FROM past x WHERE x.job = c.job AND x.attempt = c.attempt AND x.pos > c.pos AND x.kind IN
		('succeeded', 'failed', 'released', 'reclaimed', 'cancelled')) WHERE c.kind = 'claimed';
		DROP TABLE IF EXISTS moved;
		CREATE TABLE moved AS SELECT coalesce((SELECT to_state FROM past b WHERE b.job = t.job AND b.at <= $from
		AND to_state IS NOT NULL ORDER BY b.pos DESC LIMIT 1), '–') AS old, state AS new, t.job FROM made t WHERE
		EXISTS (SELECT 1 FROM past b WHERE b.job = t.job AND b.seq IS NOT NULL AND b.at > $from AND b.at <= $end);
		CREATE INDEX claims_job ON claims (job, attempt);
		DROP TABLE IF EXISTS gaps;
		CREATE TABLE gaps AS SELECT h.worker, c.boot, h.pos, h.at, s.at AS since, h.us - s.us AS gap FROM past h
		JOIN past s ON s.job = h.job AND s.seq = h.seq - 1 JOIN claims c ON c.job = h.job AND c.attempt =
		h.attempt WHERE h.kind = 'heartbeat';
		DROP TABLE IF EXISTS spans;
		CREATE TABLE spans AS SELECT t.job, t.queue, p.to_state AS state, p.kind, p.us, lead(p.us, 1,
		9223372036854775807) OVER (PARTITION BY p.job ORDER BY p.pos) AS until, max(p.us, CASE WHEN p.due IS NULL
		THEN p.us ELSE CAST(strftime('%s', p.due) AS integer) * 1000000 + CAST(substr(p.due, 21, 6) AS integer)
		END) AS ready FROM (SELECT *, coalesce(data ->> 'retry_at', data ->> 'run_at') AS due FROM past) p JOIN
		made t ON t.job = p.job WHERE p.to_state IS NOT NULL;
		CREATE INDEX spans_queue ON spans (queue, state);
		DROP TABLE IF EXISTS waited;
		CREATE TABLE waited AS SELECT c.queue, c.us, max(0, c.us - (SELECT ready FROM spans s WHERE s.job = c.job
		AND s.until = c.us AND s.state = 'queued' ORDER BY s.us DESC LIMIT 1)) AS wait FROM spans c WHERE c.kind =
		'claimed';
		CREATE TABLE processes AS SELECT s.worker, s.data ->> 'boot' AS boot, s.data ->> 'host' AS host, s.data
		->> 'pid' AS pid, s.data ->> 'version' AS version, s.at AS started, (SELECT min(x.at) FROM past x WHERE
		x.kind = 'worker_stopped' AND x.data ->> 'boot' = s.data ->> 'boot') AS stopped, max(s.at,
		coalesce((SELECT max(x.at) FROM past x JOIN claims c ON c.job = x.job AND c.attempt = x.attempt AND
		c.worker = x.worker WHERE c.boot = s.data ->> 'boot' AND x.kind <> 'reclaimed'), '')) AS seen, EXISTS
		(SELECT 1 FROM history h WHERE h.worker = s.worker AND h.kind <> 'reclaimed' AND h.pos > CAST($pos AS
		integer) AND h.at < coalesce((SELECT min(x.at) FROM history x WHERE x.worker = s.worker AND x.kind =
		'worker_started' AND x.at > s.at), '9')) AS later FROM past s WHERE s.kind = 'worker_started'`)
}

// shownTable is a table of pages, and the statement for its rows: it names the columns of the page, and the
// first keys of them name a row. A number in a column that it does not name fails the test.
type shownTable struct {
	page, name string
	keys       int
	rows       string
	some       bool // the page has not all of the rows
}

const (
	statesSQL = `count(*) FILTER (WHERE state = 'claimed') AS CLAIMED, count(*) FILTER (WHERE state =
		'running') AS RUNNING, count(*) FILTER (WHERE state = 'succeeded') AS SUCCEEDED, count(*) FILTER (WHERE
		state = 'failed') AS FAILED, count(*) FILTER (WHERE state = 'cancelled') AS CANCELLED`
	statusSQL = `count(*) FILTER (WHERE state = 'queued' AND run_at <= $now) AS READY, coalesce('‹roughly ' ||
		min(run_at) FILTER (WHERE state = 'queued' AND run_at <= $now) || ' ' || $now || '›', '-') AS OLDEST,
		count(*) FILTER (WHERE state = 'queued' AND run_at > $now) AS LATER, ` + statesSQL
	// presentNow: now, a process is there that says so elsewhere than in events, which those of a copy do not.
	presentNow = `($moment = 'past' OR EXISTS (SELECT 1 FROM claims l WHERE l.boot = p.boot AND l.end_pos IS
		NULL))`
	presentSQL = `SELECT p.pid || ' on ' || p.host AS PROCESS, coalesce(c.job, '-') AS JOB, p.worker AS WORKER,
		p.version AS VERSION, '‹roughly ' || started || ' ' || $now || '›' AS UP, '‹roughly ' || seen || ' ' ||
		$now || '›' AS SEEN, coalesce('‹roughly ' || claimed_at || ' ' || $now || '›', '') AS HELD,
		coalesce('‹roughly ' || coalesce(beat, claimed_at) || ' ' || $now || '›', '') AS BEAT, coalesce((SELECT
		CAST(round(100 * (h.data ->> 'progress')) AS integer) || '%' FROM past h WHERE h.job = c.job AND h.attempt
		= c.attempt AND h.kind = 'heartbeat' ORDER BY h.pos DESC LIMIT 1), '') AS PROGRESS FROM processes p LEFT
		JOIN claims c ON c.boot = p.boot AND c.end_pos IS NULL WHERE stopped IS NULL AND ` +
		presentNow
	claimsSQL = `SELECT job AS JOB, attempt AS ATTEMPT, pid AS PID, '‹millis ' || claimed_at || '›' AS CLAIMED,
		worker AS WORKER, '‹briefly ' || claimed_at || ' ' || coalesce(ended_at, $now) || '›' AS LASTED,
		coalesce(outcome, '') AS OUTCOME, coalesce(signal, exit_code, '') AS EXIT FROM claims `
	stepsSQL = `WITH RECURSIVE steps (i, since, until) AS (SELECT 0, CAST($start AS integer), CAST($start AS
		integer) + 180000000 UNION ALL SELECT i + 1, until, until + 180000000 + (i = 118) FROM steps WHERE i <
		119), named AS (SELECT *, strftime('%H:%M:%S', since / 1000000, 'unixepoch') AS time FROM steps) `
	depthSQL = stepsSQL + `SELECT time AS TIME, count(*) FILTER (WHERE state = 'queued' AND ready <= named.until
		- (i = 119)) AS READY, count(*) FILTER (WHERE state = 'queued' AND ready > named.until - (i = 119)) AS
		LATER, count(*) FILTER (WHERE state IN ('claimed', 'running')) AS HELD FROM named LEFT JOIN spans s ON
		s.queue = $name AND s.state IN ('queued', 'claimed', 'running') AND s.us < named.until AND s.until >=
		named.until GROUP BY i`
	waitTimesSQL = stepsSQL + `, waits AS (SELECT i, wait / 1e6 AS s, row_number() OVER (PARTITION BY i ORDER BY
		wait) - 1 AS n, count(*) OVER (PARTITION BY i) AS whole FROM named JOIN waited w ON queue = $name AND w.us
		>= since AND w.us < until) SELECT time AS TIME, '‹number ' || (SELECT s FROM waits w WHERE w.i = named.i
		AND n = (whole * 99 + 99) / 100 - 1) || '›' AS P99, '‹number ' || (SELECT s FROM waits w WHERE w.i =
		named.i AND n = (whole * 90 + 99) / 100 - 1) || '›' AS P90, '‹number ' || (SELECT s FROM waits w
		WHERE w.i = named.i
		AND n = (whole * 50 + 99) / 100 - 1) || '›'
		AS P50 FROM named`
	endedSQL = stepsSQL + `SELECT time AS TIME, count(*) FILTER (WHERE outcome = 'succeeded') AS SUCCEEDED,
		count(*) FILTER (WHERE outcome = 'failed') AS FAILED, count(*) FILTER (WHERE outcome = 'reclaimed') AS
		LOST FROM named LEFT JOIN claims ON queue = $name AND end_us >= since AND end_us < until GROUP BY i`
	runTimesSQL = stepsSQL + `, runs AS (SELECT i, (end_us - us) / 1e6 AS s, row_number() OVER (PARTITION BY i
		ORDER BY end_us - us) - 1 AS n, count(*) OVER (PARTITION BY i) AS whole FROM named JOIN claims ON queue =
		$name AND end_us >= since AND end_us < until) SELECT time AS TIME, '‹number ' || coalesce((SELECT s FROM
		runs r WHERE r.i = named.i AND n = (whole * 99 + 99) / 100 - 1), 0) || '›' AS P99, '‹number ' ||
		coalesce((SELECT s FROM runs r WHERE r.i = named.i AND n = (whole * 50 + 99) / 100 - 1), 0) ||
		'›' AS P50 FROM named`
	eventsSQL = `SELECT pos AS Pos, '‹millis ' || at || '›' AS Time, coalesce(job, '') AS Job, actor AS By FROM
		past `
)

// courseWith is how each queue goes. A wait is the upper end of its bucket.
const courseWith = `WITH RECURSIVE steps (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM steps WHERE i < 71),
	depth AS (SELECT q.queue, i, (SELECT count(*) FROM spans s WHERE s.queue = q.queue AND state = 'queued' AND
	us < CAST($steps AS integer) + (i + 1) * 300000000 AND until >= CAST($steps AS integer) + (i + 1) *
	300000000) AS n FROM steps CROSS JOIN (SELECT DISTINCT queue FROM made) q), most AS (SELECT queue, n, i,
	row_number() OVER (PARTITION BY queue ORDER BY n DESC, i) AS r FROM depth), waits AS (SELECT queue, wait,
	row_number() OVER (PARTITION BY queue ORDER BY wait) AS i, count(*) OVER (PARTITION BY queue) AS whole FROM
	waited WHERE us >= CAST($wait AS integer)), rates AS (SELECT queue, 6e7 / (CAST($micros AS integer) -
	CAST($rate AS integer)) AS minute, (SELECT count(*) FROM spans s WHERE s.queue = q.queue AND kind =
	'succeeded' AND us >= CAST($rate AS integer)) AS ok, (SELECT count(*) FROM spans s WHERE s.queue = q.queue
	AND kind IN ('failed', 'reclaimed') AND us >= CAST($rate AS integer)) AS failed, (SELECT count(*) FILTER
	(WHERE kind = 'claimed') - count(*) FILTER (WHERE kind = 'enqueued') FROM spans s WHERE s.queue = q.queue
	AND us >= CAST($rate AS integer)) AS gain, coalesce((SELECT kind = 'queue_paused' FROM past p WHERE kind IN
	('queue_paused', 'queue_resumed') AND data ->> 'queue' = q.queue ORDER BY pos DESC LIMIT 1), 0) AS paused,
	(SELECT '‹short ' || min(b.us) || '›' FROM buckets b WHERE b.us >= (SELECT min(wait) FROM waits w WHERE
	w.queue = q.queue AND w.i * 100 >= w.whole * 50)) AS p50, (SELECT '‹short ' || min(b.us) || '›' FROM buckets
	b WHERE b.us >= (SELECT min(wait) FROM waits w WHERE w.queue = q.queue AND w.i * 100 >= w.whole * 99)) AS
	p99, (SELECT CASE WHEN n = 0 THEN 'never a job was queued' ELSE 'up to ' || n || CASE n WHEN 1 THEN ' job'
	ELSE ' jobs' END || ' queued, from ' || strftime('%H:%M', CAST($steps AS integer) / 1000000 + i * 300,
	'unixepoch') || ' on' END FROM most m WHERE m.queue = q.queue AND r = 1) AS most, (SELECT count(*) FROM spans
	s WHERE s.queue = q.queue AND kind IN ('failed', 'reclaimed') AND us >= CAST($steps AS integer)) AS failures
	FROM (SELECT DISTINCT queue FROM made) q), counts AS (SELECT queue, count(*) FILTER (WHERE state = 'queued'
	AND run_at <= $now) AS ready, min(run_at) FILTER (WHERE state = 'queued' AND run_at <= $now) AS oldest,
	count(*) FILTER (WHERE state = 'queued' AND run_at > $now) AS later, count(*) FILTER (WHERE state IN
	('claimed', 'running')) AS held FROM made GROUP BY queue) `

const (
	courseSQL = courseWith + `SELECT queue || CASE WHEN paused THEN ' paused'
	ELSE '' END AS QUEUE, ready AS READY, coalesce('‹roughly ' || oldest || ' ' || $now || '›', '-') AS OLDEST,
	later AS LATER, held AS HELD, printf('%.1f', ok * minute) AS "OK/MIN", printf('%.1f', failed * minute) AS
	"FAIL/MIN", coalesce(p50, '-') AS "WAIT P50", coalesce(p99, '-') AS "WAIT P99", CASE WHEN ready = 0 THEN '-'
	WHEN paused THEN 'paused' WHEN gain <= 0 THEN 'never, at this rate' ELSE '‹for ' || (ready * 6e7 / minute /
	gain * 1000) || '›' END AS "CLEAR IN", queue || ' since ' || strftime('%H:%M', CAST($steps AS integer) /
	1000000, 'unixepoch') || ' ' || most || '; ' || failures || CASE failures WHEN 1 THEN ' failure' ELSE
	' failures' END AS "LAST 6 HOURS" FROM counts JOIN rates USING (queue) UNION ALL SELECT 'total', sum(ready),
	coalesce('‹roughly ' || min(oldest) || ' ' || $now || '›', '-'), sum(later), sum(held), printf('%.1f',
	sum(ok * minute)), printf('%.1f', sum(failed * minute)), '', '', '', '' FROM counts JOIN rates USING (queue)
	HAVING count(*) > 1`
	clearSQL = `CASE WHEN ready = 0 THEN '-' WHEN paused THEN 'paused' WHEN gain <= 0 THEN
		'never, at this rate' ELSE '‹for ' || (ready * 6e7 / minute / gain * 1000) || '›' END`
	shareSQL = `CASE WHEN ok + failed = 0 THEN '-' ELSE printf('%.0f %%', 100.0 * failed / (ok + failed)) END`
	// queuesSQL is the list of queues: how each goes, and who serves it.
	queuesSQL = courseWith + `, here AS (SELECT q.value AS queue, p.boot IN (SELECT boot FROM (` + quietSQL +
		`)) AS silent FROM processes p JOIN past s ON s.kind = 'worker_started' AND s.data ->> 'boot' = p.boot JOIN
		json_each(s.data, '$.queues') q WHERE stopped IS NULL AND ` + presentNow + `), crew AS (SELECT queue,
		count(*) || CASE sum(silent) WHEN 0 THEN '' ELSE ' ' || sum(silent) || ' silent' END AS n FROM here GROUP BY
		queue) SELECT queue || CASE WHEN paused THEN ' paused' ELSE '' END AS QUEUE, ready AS READY,
		coalesce('‹roughly ' || oldest || ' ' || $now || '›', '-') AS OLDEST, later AS LATER, held AS HELD,
		printf('%.1f', ok * minute) AS "OK/MIN", ` + shareSQL + ` AS FAILING, coalesce(p50, '-') AS "WAIT P50",
		coalesce(p99, '-') AS "WAIT P99", ` + clearSQL + ` AS "CLEAR IN", coalesce((SELECT n FROM crew c WHERE
		c.queue = counts.queue), '-') AS WORKERS, '-' AS SCHEDULES, queue || ' since ' || strftime('%H:%M',
		CAST($steps AS integer) / 1000000, 'unixepoch') || ' ' || most || '; ' || failures || CASE failures WHEN 1
		THEN ' failure' ELSE ' failures' END AS "LAST 6 HOURS" FROM counts JOIN rates USING (queue) UNION ALL SELECT
		queue, 0, '-', 0, 0, '-', '-', '-', '-', '-', n, '-', '' FROM crew WHERE queue NOT IN (SELECT queue FROM
		counts)`
	// tilesSQL are the figures of one queue.
	tilesSQL = courseWith + `SELECT ready, held, coalesce('‹roughly ' || oldest || ' ' || $now || '›', '-') AS
		oldest, later, printf('%.1f', ok * minute) AS ok, printf('%.1f', failed * minute) AS failed, ` + shareSQL +
		` AS share, coalesce(p50, '-') AS p50, coalesce(p99, '-') AS p99 FROM counts JOIN rates USING (queue) WHERE
		queue = $name`
)

var shownTables = []shownTable{
	{"/", "queues", 1, courseSQL, false},
	{"/", "failures of the last hour", 2, `SELECT t.queue AS Queue, ` + causeSQL + ` AS Cause, count(*) AS
		Attempts, count(DISTINCT f.job) AS Jobs, '‹clock ' || min(f.at) || '›' AS First, '‹clock ' ||
		max(f.at) || '›' AS Last FROM past f JOIN made t ON t.job = f.job WHERE f.kind IN
		('failed', 'reclaimed') AND f.at > $hour GROUP BY 1, 2`, false},
	{"/", "jobs by state", 1, `SELECT queue AS QUEUE, ` + statusSQL + ` FROM made GROUP BY queue UNION ALL SELECT
		'total', ` + statusSQL + ` FROM made HAVING count(DISTINCT queue) > 1`, false},
	{"/", "then and now", 1, `SELECT queue AS NOW, count(*) FILTER (WHERE state = 'queued') AS QUEUED, ` +
		statesSQL + ` FROM current WHERE $moment = 'past' AND queue IN (SELECT queue FROM made) GROUP BY queue`,
		false},
	{"/", "workers", 2, presentSQL, false},
	{"/queues", "queues", 1, queuesSQL, false},
	{"/queues/{queue}", "use of limits", 1, `SELECT 'whole queue' AS Bound, held AS Now, '-' AS "Limit", ready AS
		Waiting FROM (` + tilesSQL + `)`, false},
	{"/queues/{queue}", "jobs by state", 1, `SELECT queue AS QUEUE, ` + statusSQL + ` FROM made WHERE queue =
		$name GROUP BY queue`, false},
	{"/queues/{queue}", "workers", 2, presentSQL + ` AND EXISTS (SELECT 1 FROM past s, json_each(s.data,
		'$.queues') q WHERE s.kind = 'worker_started' AND s.data ->> 'boot' = p.boot AND q.value = $name)`, false},
	{"/queues/{queue}", "waits", 1, `WITH w AS (SELECT (c.us - max(q.us, CAST(strftime('%s', r.due) AS integer)
		* 1000000 + CAST(substr(r.due, 21, 6) AS integer))) / 1e6 AS s FROM past c JOIN past q ON q.job = c.job
		AND q.pos = (SELECT max(pos) FROM past x WHERE x.job = c.job AND x.pos < c.pos AND x.to_state = 'queued')
		JOIN (SELECT pos, coalesce(data ->> 'retry_at', data ->> 'run_at', at) AS due FROM past) r ON r.pos =
		q.pos JOIN made t ON t.job = c.job WHERE c.kind = 'claimed' AND t.queue = $name AND c.at > $from AND c.at
		<= $end), r AS (SELECT s, row_number() OVER (ORDER BY s) AS n, count(*) OVER () AS whole FROM w) SELECT
		$name AS QUEUE, max(whole) AS CLAIMS, printf('%.1fs', min(s) FILTER (WHERE n * 100 >= whole * 50)) AS P50,
		printf('%.1fs', min(s) FILTER (WHERE n * 100 >= whole * 99)) AS P99, printf('%.1fs', max(s)) AS MAX FROM r
		HAVING max(whole) > 0`, false},
	{"/queues/{queue}", "Depth", 1, depthSQL, false},
	{"/queues/{queue}", "Attempts every 3m", 1, endedSQL, false},
	{"/queues/{queue}", "Run time", 1, runTimesSQL, false},
	{"/queues/{queue}", "Wait from ready to claimed", 1, waitTimesSQL, false},
	{"/queues/{queue}", "causes", 1, `SELECT ` + causeSQL + ` AS Cause, count(*) AS Attempts,
		count(DISTINCT f.job) AS Jobs, '‹clock ' || min(f.at) || '›' AS First, '‹clock ' || max(f.at) || '›' AS
		Last FROM past f JOIN made t ON t.job = f.job WHERE f.kind IN ('failed', 'reclaimed') AND t.queue = $name
		AND f.at > $from AND f.at <= $end GROUP BY 1`, false},
	{"/lanes", "claims", 2, claimsSQL + `WHERE coalesce(ended_at, $end) > $from AND ((SELECT count(*) FROM
		claims WHERE coalesce(ended_at, $end) > $from) <= 200 OR coalesce(outcome, '') <> 'succeeded') ORDER BY
		pos LIMIT 200`, false},
	{"/workers/{worker}", "claims", 2, claimsSQL + `WHERE worker = $name AND coalesce(ended_at, $end) > $from
		ORDER BY pos DESC LIMIT 200`, false},
	{"/workers/{worker}", "held", 1, `SELECT 'pid ' || p.pid || ' on ' || p.host || coalesce(', version ' ||
		p.version, '') AS PROCESS, '‹time ' || max(coalesce(c.beat, c.claimed_at)) || '›' AS "LAST SIGN OF LIFE",
		group_concat(c.job, ', ') AS "HELD THEN" FROM (SELECT * FROM claims ORDER BY claimed_at, pos) c JOIN
		processes p ON p.boot = c.boot WHERE p.worker = $name AND p.stopped IS NULL AND NOT p.later AND
		c.claimed_at <= p.seen AND coalesce(c.ended_at, $now) > p.seen GROUP BY p.boot`, true},
	{"/workers", "workers", 1, `SELECT 'pid ' || pid || ' on ' || host || coalesce(', version ' || version, '')
		AS Process, worker AS Worker, (SELECT count(*) FROM claims c WHERE c.boot = p.boot AND c.end_pos IS NULL)
		AS Holds, '‹roughly ' || seen || ' ' || $now || '› ago' AS Seen, (SELECT CASE WHEN min(lease_until) > $now
		THEN 'ends in ‹roughly ' || $now || ' ' || min(lease_until) || '›' ELSE 'over for ‹roughly ' ||
		min(lease_until) || ' ' || $now || '›' END FROM claims c WHERE c.boot = p.boot AND c.end_pos IS NULL) AS
		Lease, '‹roughly ' || started || ' ' || $now || '› ago' AS Started, (SELECT count(*) FROM claims c WHERE
		c.boot = p.boot AND outcome = 'succeeded' AND ended_at > $hour) AS "Done, last hour", (SELECT count(*)
		FROM claims c WHERE c.boot = p.boot AND outcome = 'failed' AND ended_at > $hour) AS Failed, (SELECT
		count(*) FROM claims c WHERE c.boot = p.boot AND outcome = 'reclaimed' AND ended_at > $hour) AS Lost,
		coalesce((SELECT text FROM (` + gapTexts("at > $hour", "boot") + `) t WHERE t.boot = p.boot), '-') AS
		"Heartbeat gaps" FROM processes p WHERE stopped IS NULL AND ` + presentNow, false},
	{"/workers", "gaps between heartbeats", 2, gapCounts("g.at > $hour AND stopped IS NULL AND " + presentNow),
		false},
	{"/workers/{worker}", "gaps between heartbeats", 1, gapCounts(inWindow), false},
	{"/workers/{worker}", "processes", 1, `SELECT 'pid ' || pid || ' on ' || host || coalesce(', version ' ||
		version, '') AS PROCESS, '‹time ' || started || '›' AS STARTED, '‹time ' || coalesce(stopped, seen) || '›'
		AS "LAST SIGN OF LIFE", (SELECT count(*) FROM claims c WHERE c.boot = p.boot AND coalesce(ended_at, $end)
		> $from) AS CLAIMS, (SELECT count(*) FROM claims c WHERE c.boot = p.boot AND outcome = 'reclaimed' AND
		ended_at > $from) AS LOST, (SELECT count(*) FROM claims c WHERE c.boot = p.boot AND end_pos IS NULL) AS
		HOLDS FROM processes p WHERE worker = $name AND coalesce(stopped, $end) >= $from`, false},
	{"/failures", "failures", 2, `SELECT t.queue AS Queue, ` + causeSQL + ` AS Code, count(*) AS Attempts,
		count(DISTINCT f.job) AS Jobs, '‹day ' || min(f.at) || '›' AS
		First, '‹day ' || max(f.at) || '›' AS Last FROM past f JOIN made t ON t.job = f.job WHERE f.kind IN
		('failed', 'reclaimed') AND f.at > $from AND f.at <= $end GROUP BY 1, 2`, false},
	{"/incident", "Depth", 1, strings.ReplaceAll(depthSQL, "s.queue = $name AND ", ""), false},
	{"/incident", "Attempts every 3m", 1, strings.ReplaceAll(endedSQL, "queue = $name AND ", ""), false},
	{"/diff", "queues", 1, `WITH ends (i, at) AS (SELECT 0, $from UNION SELECT 1, $end), micros AS (SELECT i,
		CAST(strftime('%s', at) AS integer) * 1000000 + CAST(substr(at, 21, 6) AS integer) AS us FROM ends), depth
		AS (SELECT i, queue, count(*) FILTER (WHERE state = 'queued') AS queued, count(*) FILTER (WHERE state IN
		('claimed', 'running')) AS held FROM micros m JOIN spans s ON s.us <= m.us AND s.until > m.us AND state IN
		('queued', 'claimed', 'running') GROUP BY i, queue), waits AS (SELECT i, queue, wait, row_number() OVER
		(PARTITION BY i, queue ORDER BY wait) - 1 AS n, count(*) OVER (PARTITION BY i, queue) AS whole FROM micros m
		JOIN waited w ON w.us <= m.us AND w.us > m.us - 3600000000), p99 AS (SELECT i, queue, '‹short ' || wait ||
		'›' AS p99 FROM waits WHERE n = (whole * 99 + 99) / 100 - 1), names AS (SELECT queue FROM depth UNION SELECT
		queue FROM p99) SELECT queue AS QUEUE, coalesce((SELECT queued FROM depth d WHERE d.queue =
		n.queue AND i = 0), 0) ||
		' → ' || coalesce((SELECT queued FROM depth d WHERE d.queue = n.queue AND i = 1), 0) AS QUEUED,
		coalesce((SELECT held FROM depth d WHERE d.queue = n.queue AND i = 0), 0) || ' → ' || coalesce((SELECT held
		FROM depth d WHERE d.queue = n.queue AND i = 1), 0) AS HELD, coalesce((SELECT p99 FROM p99 p WHERE p.queue =
		n.queue AND i = 0), '-') || ' → ' || coalesce((SELECT p99 FROM p99 p WHERE p.queue = n.queue AND i = 1),
		'-') AS "WAIT P99" FROM names n`, false},
	{"/incident", "failures", 2, `SELECT t.queue AS Queue, ` + causeSQL + ` AS Cause, count(*) AS Attempts,
		count(DISTINCT f.job) AS Jobs, '‹clock ' || min(f.at) || '›' AS First, '‹clock ' || max(f.at) || '›' AS
		Last FROM past f JOIN made t ON t.job = f.job WHERE f.kind IN ('failed', 'reclaimed') AND f.at > $from AND
		f.at <= $end GROUP BY 1, 2`, false},
	{"/events", "events", 1, eventsSQL + `WHERE pos > CAST($pos AS integer) - 100`, false},
	{"/tail", "events", 1, eventsSQL + `WHERE pos IN (SELECT pos FROM past WHERE kind <> 'heartbeat' ORDER BY
		pos DESC LIMIT 100)`, false},
	{"/integrity", "checks", 1, `WITH RECURSIVE codes (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM codes WHERE
		i < 34) SELECT printf('V%02d', i) AS "Check", (SELECT max(pos) FROM history) AS "Up to pos" FROM
		codes`, false},
	{"/integrity", "events", 1, `SELECT pos AS POS, '‹millis ' || at || '›' AS TIME FROM history WHERE kind IN
		('rebuilt', 'restored', 'imported', 'sealing', 'archived', 'erased')`, false},
	{"/integrity", "counts", 1, `WITH counted (WHAT, kind) AS (VALUES ('restored from a backup', 'restored'),
		('rebuilt from the events', 'rebuilt'), ('imported from a file', 'imported')) SELECT WHAT, (SELECT count(*)
		FROM history h WHERE h.kind = c.kind) AS COUNT, coalesce((SELECT 'pos ' || pos || ', ‹time ' || at || '›'
		FROM history h WHERE h.kind = c.kind ORDER BY pos DESC LIMIT 1), 'never') AS LAST FROM counted c UNION
		SELECT 'jobs whose payload was erased', count(DISTINCT job), '' FROM history WHERE kind = 'erased' UNION
		SELECT 'events in files of the archive', coalesce(sum((data ->> 'hi') - (data ->> 'lo')), 0), '' FROM
		history WHERE kind = 'archived' UNION SELECT 'events that have left the ledger for them',
		coalesce(sum(data ->> 'events'), 0), '' FROM history WHERE kind = 'removed'`, false},
	{"/jobs/{job}", "attempts", 2, claimsSQL + `WHERE job = $name`, false},
	{"/jobs/{job}", "history", 1, `SELECT pos AS Pos, '‹millis ' || at || '›' AS Time, actor AS By,
		coalesce('‹gap ' || (SELECT max(at) FROM past x WHERE x.job = $name AND x.pos < p.pos) || ' ' || at ||
		'›', '') AS After FROM past p WHERE job = $name`, true},
	{"/jobs", "jobs", 1, `SELECT job AS JOB, failures || '/' || max_attempts AS FAILS, coalesce(key, '') AS
		KEY, CASE WHEN state IN ('claimed', 'running') THEN (SELECT CASE WHEN lease_until < $now THEN
		'expired ‹roughly ' || lease_until || ' ' || $now || '› ago' ELSE 'for ‹roughly ' || claimed_at || ' ' ||
		$now || '›' || coalesce(', ' || (SELECT CAST(round(100 * (h.data ->> 'progress')) AS integer) || '%' FROM
		past h WHERE h.job = c.job AND h.attempt = c.attempt AND h.kind = 'heartbeat' ORDER BY h.pos DESC LIMIT
		1), '') END FROM claims c WHERE c.job = m.job ORDER BY pos DESC LIMIT 1) WHEN state = 'queued' AND run_at
		> $now THEN 'in ‹roughly ' || $now || ' ' || run_at || '›' WHEN state = 'queued' THEN 'ready ‹roughly ' ||
		run_at || ' ' || $now || '›' ELSE '‹roughly ' || since || ' ' || $now || '› ago' END AS "WHEN" FROM made m
		ORDER BY job DESC LIMIT 50`, false},
}

// gapBuckets are the names of the buckets in which pages count the gaps between heartbeats, with their upper
// ends in seconds. What is longer is in one more.
var gapBuckets = []struct {
	name string
	end  int
}{{"1s", 1}, {"2s", 2}, {"5s", 5}, {"10s", 10}, {"15s", 15}, {"20s", 20}, {"25s", 25}, {"30s", 30},
	{"45s", 45}, {"1m", 60}, {"2m", 120}, {"5m", 300}, {"10m", 600}}

// inWindow are the gaps of the worker of a page, within its window.
const inWindow = "g.worker = $name AND g.at > $from AND g.at <= $end"

// gapCounts has a row for each process with gaps of which a condition holds: its name, and how many gaps
// are in which bucket.
func gapCounts(condition string) string {
	counts, begin := "", 0
	for _, b := range gapBuckets {
		counts += fmt.Sprintf(`, count(*) FILTER (WHERE gap > %d AND gap <= %d) AS "≤ %s"`, begin, b.end*1e6,
			b.name)
		begin = b.end * 1e6
	}
	return fmt.Sprintf(`WITH found AS (SELECT g.*, p.pid, p.host, p.version, row_number() OVER (PARTITION BY
		g.boot ORDER BY gap DESC) AS i FROM gaps g JOIN processes p ON p.boot = g.boot WHERE %s) SELECT 'pid ' ||
		pid ||
		' on ' || host || coalesce(', version ' || version, '') AS PROCESS, worker AS WORKER, count(*) AS
		HEARTBEATS, max('‹briefly ' || since || ' ' || at || '›') FILTER (WHERE i = 1) AS LONGEST %s, count(*)
		FILTER (WHERE gap > %d) AS "> 10m" FROM found GROUP BY boot`, condition, counts, begin)
}

// gapBucketSQL names the bucket of a gap in words.
func gapBucketSQL() string {
	name := "CASE"
	for _, b := range gapBuckets {
		name += fmt.Sprintf(" WHEN gap <= %d THEN 'up to %s'", b.end*1e6, b.name)
	}
	return name + " ELSE 'over 10m' END"
}

// gapTexts says in words, for each group of gaps, how many are in which bucket and how long the longest was.
func gapTexts(condition, group string) string {
	return fmt.Sprintf(`WITH named AS (SELECT *, %s AS bucket FROM gaps g WHERE %s), counts AS (SELECT worker,
		%[3]s, bucket, count(*) AS n, min(gap) AS least FROM named GROUP BY %[3]s, bucket) SELECT %[3]s,
		'Gaps between heartbeats of ' || worker || ' ' || group_concat(n || ' ' || bucket, ', ' ORDER BY least) ||
		'; the longest ' || (SELECT '‹briefly ' || since || ' ' || at || '›' FROM named x WHERE x.%[3]s = c.%[3]s
		ORDER BY gap DESC LIMIT 1) AS text FROM counts c GROUP BY %[3]s`, gapBucketSQL(), condition, group)
}

// momentsWalked are the positions at which every page is looked at; 0: now.
func momentsWalked() []int {
	return ledgertest.Size([]int{2159}, []int{2159, 0}, []int{700, 2159, 2600, 4155, 0})
}

// Every number that a page shows is what SQL over the public views says of that moment: in each table, each
// text, and each description of a picture. A number that no row of this test explains fails it, and so does a
// page of which it does not know an address.
func TestPagesShowNumbersOfTheViews(t *testing.T) {
	t.Parallel()
	s, night := serveNight(t)
	named := filepath.Base(s.Store.Path()) // of a database that has numbers in its name
	get := func(path string) string { return strings.ReplaceAll(night(path), named, "jobledger.db") }
	path := filepath.Join(t.TempDir(), "copy.db") // the statements are those of SQLite
	s.copyTo(path)
	views := copyViews(t, path)
	for !strings.Contains(get("/integrity"), "verified to pos 4564") {
		time.Sleep(20 * time.Millisecond) // no event says that a check has ended
	}
	addresses := map[string][]string{"/queues/{queue}": {"mail", "render"},
		"/workers/{worker}": {"charlie-render", "bravo-render", "alpha-mail"},
		"/jobs/{job}": {"01KKQGAZ43CWGCX9CD0BRFPDB6", "01KKQDH80S3X4FMEXS75VJXM6W",
			"01KKQ629E11H44QX3QSRRZDW06"}}
	for _, pos := range momentsWalked() {
		at, now := fmt.Sprint(pos), morning
		if pos == 0 {
			at = views.one("SELECT max(pos) FROM history")
		} else {
			var err error
			now, err = time.Parse(time.RFC3339, views.one("SELECT at FROM history WHERE pos = "+at))
			check(t, err)
		}
		end := now
		if pos == 0 { // some time after the last claim
			text := get("/lanes")
			var err error
			end, err = time.Parse(time.RFC3339, windowEnd.FindStringSubmatch(text)[1])
			check(t, err)
		}
		views.setMoment(at, now, end)
		for _, route := range web.New(web.Config{}).Pages() {
			if route == "/events/{pos}" || route == "/api" || route == "/zone" ||
				strings.HasPrefix(route, "/acts") || strings.HasPrefix(route, "/queues/{queue}/") ||
				strings.HasPrefix(route, "/schedules/{schedule}") || route == "/new/schedule" { // the night has none
				continue // it leads to another page; it is not about the ledger, about one act, or a form
			}
			names := addresses[route]
			if !strings.Contains(route, "{") {
				names = []string{""}
			}
			if names == nil {
				t.Errorf("no address of the page %s is known to this test", route)
			}
			for _, name := range names {
				views.values["name"] = name
				path := regexp.MustCompile(`\{.*\}`).ReplaceAllString(route, name)
				if pos > 0 {
					path += "?at=" + url.QueryEscape("pos:"+at)
				}
				if (strings.HasPrefix(route, "/jobs/{") || strings.HasPrefix(route, "/queues/{")) &&
					views.one("SELECT count(*) FROM made WHERE job = $name OR queue = $name") == "0" {
					continue // it was not enqueued yet
				}
				if pos > 0 && slices.Contains([]string{"/tail", "/login", "/ledgers", "/integrity"}, route) {
					continue // it shows now only
				}
				views.checkPage(route, path, figuresOf(t, get(path)))
			}
		}
	}
}

// checkPage compares the numbers of a page with the views.
func (v *copiedViews) checkPage(route, path string, shown []figure) {
	v.t.Helper()
	for _, table := range shownTables {
		if table.page == route && table.rows != "" {
			shown = v.checkTable(table, path, shown)
		}
	}
	for _, f := range shown {
		if ok, why := v.explained(v.t, route, f); !ok {
			v.t.Errorf("%s: %s %q %q: no statement says %q:%s", path, f.where, f.row, f.column, f.text, why)
		}
	}
}

// checkTable compares the rows of a table, and returns the figures that are not part of it.
func (v *copiedViews) checkTable(table shownTable, path string, shown []figure) (rest []figure) {
	v.t.Helper()
	columns, rows := v.rows(table.rows)
	want := make(map[string][]string)
	for _, row := range rows {
		want[strings.Join(row[:table.keys], " ")] = row
	}
	seen := make(map[string]bool)
	for _, f := range shown {
		if f.where != table.name {
			rest = append(rest, f)
			continue
		}
		var key []string
		for _, column := range columns[:table.keys] {
			key = append(key, f.cell(column))
		}
		row, ok := want[strings.Join(key, " ")]
		i := slices.Index(columns, f.column)
		seen[strings.Join(key, " ")] = true
		switch {
		case !ok:
			v.t.Errorf("%s: %s has a row %q, and SQL has none", path, f.where, f.cells)
		case i >= 0 && row[i] != f.text:
			v.t.Errorf("%s: %s of %v in %s: %s, want %s", path, f.column, key, f.where, f.text, row[i])
		case i < 0:
			rest = append(rest, f)
		}
	}
	if len(seen) != len(want) && !table.some {
		v.t.Errorf("%s: %s has %d rows with numbers, want %d", path, table.name, len(seen), len(want))
	}
	return rest
}
