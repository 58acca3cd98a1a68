package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// shownText is a text of pages. The groups of its pattern are what a statement selects by the same names; it
// has each group as $g and its name, the first cells of a row as $rowa and $rowb, and the title of the column
// as $column.
type shownText struct {
	page, where string // "": each page; anywhere. For a cell the table, a slash and the column
	pattern     string
	rows        string // "": the number is none of the ledger
	// words: the statement selects texts, and each word with a digit of the text is one of theirs.
	words bool
}

const (
	window = `\S+ \S+ to (?:\S+ )?(?P<to>\S+) UTC, 6h`
	// reclaimedSQL are the claims of a host or a worker that were taken back, as a finding names them.
	reclaimedSQL = `FROM claims WHERE outcome = 'reclaimed' AND instr($gwho, worker) AND ended_at > $from AND
		ended_at <= $end AND ended_at >= (SELECT min(seen) FROM gone)`
	// atomsSQL selects what the data of some events have, as it is there and as pages show it.
	atomsSQL = `WITH which AS (SELECT p.*, j.atom FROM past p, json_tree(p.data) j WHERE j.atom IS NOT NULL AND
		%s) SELECT atom || ' ' || pos || ' ' || coalesce(job, '') || ' ' || coalesce(attempt, '') || ' ' ||
		coalesce(worker, '') || ' ' || actor FROM which UNION SELECT '‹millis ' || at || '› ‹time ' || at ||
		'› ‹clock ' || at || '› ‹roughly ' || at || ' ' || $now || '›' FROM which UNION SELECT '‹clock ' || atom
		|| '› ‹time ' || atom || '› ‹briefly ' || at || ' ' || atom || '› ‹briefly ' || atom || ' ' || at ||
		'› ‹roughly ' || $now || ' ' || atom || '›' || ' ‹roughly ' || atom || ' ' || $now || '›' FROM which WHERE
		atom GLOB '20[0-9][0-9]-*T*Z' UNION SELECT CAST(round(100 * (data ->> 'progress')) AS integer) || '%' FROM
		which UNION SELECT 'SHA-256' UNION SELECT '‹seconds ' || (q.data ->> 'max_runtime') || '›' FROM which w
		JOIN past q ON q.job = w.job AND q.kind = 'enqueued' WHERE q.data ->> 'max_runtime' > 0 UNION SELECT
		c.host || ' ' || c.pid || ' ' || c.version || ' ‹briefly ' || c.claimed_at || ' ' || coalesce(c.ended_at,
		$now) || '›' || ' ‹roughly ' || c.claimed_at || ' ' || coalesce(c.ended_at, $now) || '›' FROM which w JOIN
		claims c ON c.job = w.job AND c.attempt = w.attempt`
	// silentSQL are the workers that the text names: those are left out whose place another one took.
	silentSQL = `WITH gone AS (SELECT * FROM (` + quietSQL + `) WHERE instr($gwho, worker)) SELECT (SELECT
		count(*) FROM gone) AS n, coalesce((SELECT CASE count(*) WHEN 0 THEN 'no job' WHEN 1 THEN '1 job' ELSE
		count(*) || ' jobs' END FROM claims c JOIN gone g ON g.boot = c.boot WHERE c.end_pos IS NULL), '') AS
		jobs, pid, version, '‹roughly ' || seen || ' ' || $now || '›' AS age FROM gone ORDER BY worker, started
		LIMIT 1`
	tabSQL    = `SELECT $gstate AS state, count(*) AS n FROM made WHERE $gstate IN ('all', state)`
	clocksSQL = `SELECT '‹clock ' || at || '› ‹millis ' || at || '›' FROM past`
)

var shownTexts = []shownText{
	{"", "data-tail", `(?P<tail>\d+)`, `SELECT $tail AS tail`, false},
	{"", "data-pos", `(?P<pos>\d+)`, `SELECT $pos AS pos`, false},
	{"", "data-after", `(?P<pos>\d+)`, `SELECT $pos AS pos`, false},
	{"", "p when", `The ledger as it was at (?P<at>\S+ \S+), (?P<age>\S+) ago, pos (?P<pos>\d+) of ` +
		`(?P<tail>\d+)\. ` +
		`Nothing can be changed there\.`, `SELECT '‹time ' || $now || '›' AS at, $pos AS pos, $tail AS tail,
			'‹roughly ' || $now || ' ' || '2026-03-15T08:00:00Z' || '›' AS age`, false},
	{"", "p when", `(?P<at>\S+ \S+), pos (?P<pos>\d+)\.`, `SELECT '‹time ' || $now || '›' AS at, $pos AS pos`,
		false},
	{"", "p", `pos (?P<pos>\d+) · verified to pos (?P<tail>\d+) ✓, (?P<at>\S+ \S+)( · \d+ workers? silent)? · ` +
		`serve \S+ · ledger [0-9a-f]{8} · API`, `SELECT $pos AS pos, $tail AS tail, '‹time ' ||
		'2026-03-15T08:00:00Z' || '›' AS at`, false},
	{"", "span", `◌ as of (?P<at>\S+)`, `SELECT '‹clock ' || '2026-03-15T08:00:00Z' || '›' AS at`, false},
	{"", "svg label", `(?P<text>What went wrong, .*)`, `WITH kinds (n, one, many) AS ( SELECT (SELECT count(*)
		FROM history WHERE kind = 'refused'), 'write that came too late', 'writes that came too late' UNION ALL
		SELECT (SELECT count(*) FROM history WHERE kind = 'failed' AND to_state = 'failed'), 'job given up',
		'jobs given up' UNION ALL SELECT (SELECT count(*) FROM history WHERE kind = 'reclaimed'),
		'job taken back', 'jobs taken back' UNION ALL SELECT (SELECT count(*) FROM history WHERE kind =
		'restored'), 'restore', 'restores' UNION ALL SELECT (SELECT count(*) FROM history WHERE kind = 'rebuilt'),
		'rebuild', 'rebuilds' UNION ALL SELECT (SELECT count(*) FROM history WHERE kind = 'queue_paused'),
		'queue paused', 'queues paused' UNION ALL SELECT (SELECT count(*) FROM history WHERE kind =
		'queue_resumed'), 'queue resumed', 'queues resumed' UNION ALL SELECT (SELECT count(*) FROM (SELECT data
		->> 'version' AS v, lag(data ->> 'version') OVER (PARTITION BY worker ORDER BY pos) AS was FROM history
		WHERE kind = 'worker_started') WHERE v <> was), 'new version', 'new versions') SELECT
		'What went wrong, from the first event to the last: ' || coalesce(group_concat(n || ' ' || CASE n WHEN 1
		THEN one ELSE many END, ', '), 'nothing') AS text FROM kinds WHERE n > 0`, false},
	{"", "li", `Jobs (?P<n>\d+)`, `SELECT count(*) AS n FROM current`, false},
	{"", "li", `Failures (?P<n>\d+)`, `SELECT count(*) AS n FROM past WHERE kind IN ('failed', 'reclaimed') AND
		at > $hour`, false},
	{"", "li", `Queues (?P<n>\d+)`, `SELECT count(*) AS n FROM (SELECT queue FROM made UNION SELECT q.value FROM
		processes p JOIN past s ON s.kind = 'worker_started' AND s.data ->> 'boot' = p.boot JOIN json_each(s.data,
		'$.queues') q WHERE stopped IS NULL AND ` + presentNow + `)`, false},
	{"", "li", `Schedules (?P<n>\d+)`, `SELECT count(*) AS n FROM history WHERE kind = 'schedule_set'`, false},
	{"", "li", `Workers (?P<n>\d+)`, `SELECT count(*) AS n FROM processes p WHERE stopped IS NULL AND ` +
		presentNow, false},
	{"", "svg label", `The last 24 h: above .*`, "", false}, // what is chosen at first
	{"", "button", `24 h|6 h|7 d`, "", false},               // what can be chosen
	{"", "a trouble", `◂ (?P<at>\S+)`, `SELECT substr(max(at), 12, 5) AS at FROM history WHERE kind IN
		('refused', 'reclaimed', 'restored', 'rebuilt', 'queue_paused', 'queue_resumed') OR
		kind = 'failed' AND to_state = 'failed'`, false},
	{"", "p paper", `All times are in the zone UTC, and the page is about (?P<at>\S+ \S+)\.`,
		`SELECT '‹time ' || $now || '›' AS at`, false},
	{"", "dd", `.*`, "", false},                                 // a command; TestPagesCopy… has them
	{"", "a", `Last 6 hours`, "", false},                        // the window that is the default
	{"", "canvas label", `.* 0 shows everything,.*`, "", false}, // the name of a key
	{"/schedules", "p", `No schedule is set\. .*`, "", false},   // a command
	{"/jobs", "a button", `(?P<state>\w+) (?P<n>\d+)`, tabSQL, false},
	{"/jobs", "a button now", `(?P<state>\w+) (?P<n>\d+)`, tabSQL, false},
	{"/jobs", "p quiet", `The jobs are as of pos (?P<pos>\d+); one that changes after that is left as it is\. ` +
		`Nothing .*`, `SELECT $pos AS pos`, false},
	{"/login", "p", `.*for 5 minutes\.`, "", false}, // a limit

	{"/", "p", `The last event: \S+, (?P<age>\S+) ago\.`, `SELECT '‹roughly ' || max(at) || ' ' || $now || '›'
		AS age FROM past`, false},
	{"/", "p", `Last hour: (?P<text>.*)`, `WITH kinds (i, kind) AS (VALUES (1, 'enqueued'), (2, 'claimed'), (3,
		'succeeded'), (4, 'failed'), (5, 'released'), (6, 'reclaimed'), (7, 'cancelled'), (8, 'refused')), counts
		AS (SELECT i, k.kind, count(*) AS n FROM kinds k JOIN past p ON p.kind = k.kind WHERE at > $hour GROUP BY
		i ORDER BY i) SELECT coalesce(group_concat(n || ' ' || kind, ', '), 'no job was touched') AS text FROM
		counts`, false},
	{"/", "p problem", `✕ .*`, "", false},
	// What the rules say of a course of minutes is held by TestBadNightIsNamed.
	{"/", "li problem", `problem .* \(D4\d\).*`, "", false},
	{"/queues/{queue}", "li problem", `problem .* \(D4\d\).*`, "", false},
	{"/", "li warning", `warning .* \(D4\d\).*`, "", false},
	{"/queues/{queue}", "li warning", `warning .* \(D4\d\).*`, "", false},
	{"", "li info", `info (?:\S+: )?\d+ jobs? failed for good within the hour, .*`, "", false},
	{"", "li problem", `problem (?:(?P<q>\S+): )?(?P<n>\d+) jobs? ready, the first for (?P<age>\S+), and no ` +
		`worker serves the ` +
		`queue; its workers stopped, the last at (?P<at>\S+ \S+) \((?P<ago>\S+) ago\)` + remedy,
		`SELECT count(*) AS n, '‹roughly ' || min(run_at) || ' ' || $now || '›' AS age, (SELECT '‹time ' ||
			max(stopped) || '›' FROM processes) AS at, (SELECT '‹roughly ' || max(stopped) || ' ' || $now || '›' FROM
			processes) AS ago FROM made WHERE queue = coalesce(nullif($gq, ''), $name) AND state = 'queued' AND
			run_at <= $now`, false},
	{"", "li info", `info (?:(?P<q>\S+): )?(?P<n>\d+) queued jobs? failed before and will be tried again`,
		`SELECT count(*) AS n FROM made WHERE queue = coalesce(nullif($gq, ''), $name) AND state = 'queued' AND
			failures > 0`, false},
	{"", "li info", `info (?:(?P<q>\S+): )?the next scheduled job runs in (?P<age>\S+)`,
		`SELECT '‹roughly ' || $now || ' ' || min(run_at) || '›' AS age FROM made WHERE queue =
			coalesce(nullif($gq, ''), $name) AND state = 'queued' AND run_at > $now`, false},
	{"", "li info", `info (?:(?P<q>\S+): )?(?P<n>\d+) leases? ran out, the first (?P<age>\S+) ago, not ` +
		`swept yet` + remedy, overdueSQL, false},
	{"", "li problem", `problem (?:(?P<q>\S+): )?(?P<n>\d+) leases? ran out, the first (?P<age>\S+) ago, ` +
		`and no .*`, overdueSQL, false},
	{"", "li warning", `warning (?:(?P<q>\S+): )?paused (?P<age>\S+) ago by .*: (?P<reason>.*?)` + remedy,
		pausedSQL, false},
	{"/", "li warning", `warning (?P<n>\d+) workers? (?:is|are) silent, holding (?P<jobs>no job|\d+ jobs?): ` +
		`(?P<who>.*); the first, pid (?P<pid>\d+) on \S+, version (?P<version>\S+), was seen (?P<age>\S+) ` +
		`ago Workers \(D21\)`, silentSQL, false},
	{"/", "li problem", `problem (?P<n>\d+) workers? (?:is|are) silent, holding (?P<jobs>\d+ jobs?)` +
		`(?: \(the first lease ends in \S+\))?: ` +
		`(?P<who>.*); the first, pid (?P<pid>\d+) on \S+, version (?P<version>\S+), was seen (?P<age>\S+) ` +
		`ago Workers \(D21\)`, silentSQL, false},
	{"/", "p", `(?P<text>\d+ (?:working|idle|silent).*)`, `WITH crew AS (SELECT CASE WHEN boot IN (SELECT
		boot FROM (` + quietSQL + `)) THEN 'silent' WHEN EXISTS (SELECT 1 FROM claims c WHERE c.boot = p.boot
		AND end_pos IS NULL) THEN 'working' ELSE 'idle' END AS state FROM processes p WHERE stopped IS NULL AND
		` + presentNow + `), n AS (SELECT state, count(*) AS n FROM crew GROUP BY state) SELECT group_concat(n
		|| ' ' || state, ' · ' ORDER BY state = 'silent', state DESC) AS text FROM n`, false},
	{"/", "title", `(?P<text>\S+ since \S+)`, inCourseSQL, false},
	{"/", "desc", `(?P<text>.*)`, inCourseSQL, false},
	{"/queues", "title", `(?P<text>\S+ since \S+)`, inCourseSQL, false},
	{"/queues", "desc", `(?P<text>.*)`, inCourseSQL, false},
	{"/queues/{queue}", "title", `(?P<text>\S+ since \S+)`, inCourseSQL, false},
	{"/queues/{queue}", "desc", `(?P<text>.*)`, inCourseSQL, false},
	{"/", "li", `(?P<at>\S+) .*`, fmtAtoms(`p.kind IN ('cancelled', 'retried', 'rescheduled', 'erased',
		'queue_paused', 'queue_resumed', 'rebuilt', 'restored', 'queue_limited') AND p.at > datetime($now,
		'-1 day')`) + ` UNION SELECT count(*) FROM which GROUP BY kind, actor, atom UNION SELECT '‹day ' || at
		|| '›' FROM which`, true},
	{"", "p warning", `Paused (?P<age>\S+) ago by .*: (?P<reason>.*)`, pausedSQL, false},

	{"/lanes", "p window", window + `: (?P<claims>\d+) claims? of (?P<workers>\d+) workers?\.`,
		`SELECT '‹clock ' || $end || '›' AS "to", (SELECT count(*) FROM claims WHERE coalesce(ended_at, $end) >
			$from) AS claims, (SELECT count(*) FROM (SELECT worker, host FROM claims WHERE coalesce(ended_at, $end) >
			$from UNION SELECT worker, host FROM processes WHERE NOT later AND stopped IS NULL)) AS workers`, false},
	{"/workers/{worker}", "p window", window + `: (?P<claims>\d+) claims?, (?P<n>\d+) process(?:es)? on .*\.`,
		`SELECT '‹clock ' || $end || '›' AS "to", (SELECT count(*) FROM claims WHERE worker = $name AND
			coalesce(ended_at, $end) > $from) AS claims, (SELECT count(DISTINCT boot) FROM claims WHERE worker =
			$name AND coalesce(ended_at, $end) > $from) AS n`, false},
	{"/workers/{worker}", "p gaps", `From a claim .* The longest was (?P<longest>\S+), pos (?P<pos>\d+)\.`,
		`SELECT '‹briefly ' || since || ' ' || at || '›' AS longest, pos FROM gaps g WHERE ` + inWindow +
			` ORDER BY gap DESC, pos LIMIT 1`, false},
	{"/workers/{worker}", "desc", `(?P<text>.*)`, `SELECT substr(text, instr(text, $name) + length($name) + 1) AS
		text FROM (` + gapTexts(inWindow, "worker") + `)`, false},
	{"/workers/{worker}", "text", `\d+[sm]`, "", false}, // the name of a bucket
	{"/workers/{worker}", "text", `(?P<n>\d+)`, `SELECT n FROM (SELECT count(*) AS n FROM gaps g WHERE ` +
		inWindow + ` GROUP BY ` + gapBucketSQL() + ` UNION SELECT 0) WHERE n = CAST($gn AS integer)`, false},
	{"/workers", "desc", `.*`, `SELECT text FROM (` + gapTexts("at > $hour", "boot") + `)`, true}, // as its cell
	{"/workers/{worker}", "p window", window + `: (?P<claims>0) claims\.`, `SELECT '‹clock ' || $end || '›' AS
		"to", count(*) AS claims FROM claims WHERE worker = $name AND coalesce(ended_at, $end) > $from`, false},
	{"/lanes", "p", `These are the claims that did not succeed; all of them: .*`, "", false}, // a command
}

// remedy ends the sentences of what is to be done.
const remedy = `(?: \(D\d+\))?(?: jobledger .*)?`

const (
	// inCourseSQL: the table of the queues has the text.
	inCourseSQL = `SELECT $gtext AS text WHERE EXISTS (SELECT 1 FROM (` + courseSQL + `) WHERE
		instr("LAST 6 HOURS", $gtext))`
	// quietSQL are the processes without a sign of life, whose leases do not speak for them.
	quietSQL = `SELECT * FROM processes p WHERE stopped IS NULL AND ` + presentNow + ` AND NOT later AND
		86400 * (julianday($now) - julianday(seen)) > ` + patienceSQL
	// In retrospect one record that a process missed is enough, if nothing shows that it lived later.
	patienceSQL = `CASE $moment WHEN 'past' THEN 15 ELSE 45 END`
	overdueSQL  = `SELECT count(*) AS n, '‹roughly ' || min(lease_until) || ' ' || $now || '›' AS age FROM
		claims WHERE queue = coalesce(nullif($gq, ''), $name) AND end_pos IS NULL AND lease_until < $now`
	pausedSQL = `SELECT '‹roughly ' || at || ' ' || $now || '›' AS age, data ->> 'reason' AS reason FROM past
		WHERE kind = 'queue_paused' AND data ->> 'queue' = coalesce(nullif($gq, ''), $name) ORDER BY pos DESC
		LIMIT 1`
)

func init() {
	inTimeline := fmtAtoms(`p.at > $from AND p.at <= $end AND substr(p.at, 12, 8) BETWEEN $ga AND
		coalesce(nullif($gb, ''), $ga)`) + ` UNION
		SELECT count(*) FROM which GROUP BY kind, atom UNION SELECT count(DISTINCT pos) FROM which GROUP BY kind,
		worker`
	silentSQL := `WITH gone AS (SELECT worker, started, seen FROM processes p WHERE instr($gwho, worker) AND
		stopped IS NULL AND NOT later) SELECT '‹clock ' || min(seen) || '›' AS at, (SELECT count(*) ` +
		reclaimedSQL + `)
			AS n, (SELECT '‹clock ' || min(ended_at) || '›' ` + reclaimedSQL + `) AS first FROM gone`
	againSQL := strings.Replace(silentSQL, "SELECT '‹clock ' || min",
		`SELECT (SELECT '‹clock ' || max(started) || '›' FROM processes p WHERE p.worker IN (SELECT worker FROM
			gone) AND started > (SELECT max(seen) FROM gone)) AS again, '‹clock ' || min`, 1)
	for _, where := range []string{"li deploy", "li paused", "li resumed", "li lost"} {
		shownTexts = append(shownTexts, shownText{"/queues/{queue}", where, `(?P<at>\S+) .*`, fmtAtoms(`p.kind IN
			('queue_paused', 'queue_resumed', 'worker_started') AND p.at <= $end`) + ` UNION SELECT '‹clock ' || seen
			|| '›' FROM processes`, true})
	}
	for _, where := range []string{"li dead_host", "li silent"} {
		begin := `(?:Host )?(?P<who>.*) fell silent at (?P<at>\S+)\. `
		shownTexts = append(shownTexts, []shownText{
			{"", where, begin + `(?P<n>\d+) jobs were taken back, the first at (?P<first>\S+)\.`, silentSQL, false},
			{"", where, begin + `(?P<n>\d+) jobs were taken back, the first at (?P<first>\S+)\. Started again by ` +
				`(?P<again>\S+)\.`,
				againSQL, false},
			{"", where, begin + `One job was taken back, at (?P<first>\S+)\.`, `SELECT at, first FROM (` +
				silentSQL + `) WHERE n = 1`,
				false},
			{"", where, begin + `One job was taken back, at (?P<first>\S+)\. Started again by (?P<again>\S+)\.`,
				`SELECT at, first, again FROM (` + againSQL + `) WHERE n = 1`, false},
			{"", where, begin + `No job was taken back from it\.`, `SELECT at FROM (` + silentSQL + `) WHERE n = 0`,
				false},
		}...)
	}
	shownTexts = append(shownTexts, []shownText{
		{"", "li frozen", `(?P<who>\S+) stopped at (?P<at>\S+) and went on at (?P<on>\S+): in between its job ` +
			`was taken back, so ` +
			`its write was refused\. pos (?P<pos>\d+)`, `SELECT '‹clock ' || c.beat || '›' AS at, '‹clock ' || p.at
			|| '›' AS "on", p.pos AS pos FROM past p JOIN claims c ON c.job = p.job AND c.attempt = p.attempt WHERE
			p.kind = 'refused' AND p.worker = $gwho AND p.at > $from AND c.outcome = 'reclaimed' ORDER BY p.pos LIMIT
			1`, false},
		{"", "li twice", `(?P<who>\S+) finished too late\. Its result is NOT equal .* pos (?P<pos>\d+)`,
			doubleSQL, false},
		{"", "p problem", `Done twice (?P<who>\S+) finished too late\. Its result is NOT equal .* ` +
			`pos (?P<pos>\d+)`, doubleSQL, false},
		{"", "li outage", `(?P<n>\d+) attempts of (?P<q>\S+) failed with (?P<code>\S+) from (?P<a>\S+) to ` +
			`(?P<b>\S+): (?P<why>.*)\. ` +
			`pos (?P<pos>\d+)`, `SELECT count(*) AS n, min(f.pos) AS pos, '‹clock ' || min(f.at) || '›' AS a,
			'‹clock ' || max(f.at) || '›' AS b, max(substr(f.data ->> 'error_detail', 1, instr(f.data ->>
			'error_detail' || char(10), char(10)) - 1)) AS why FROM past f JOIN made t ON t.job = f.job WHERE f.kind
			= 'failed' AND t.queue = $gq AND f.data ->> 'error_code' = $gcode AND f.at > $from AND f.at <= $end AND
			($name = '' OR f.worker = $name)`, false},
		{"", "li pause", `Queue (?P<q>\S+) was paused from (?P<a>\S+) to (?P<b>\S+), by \S+: (?P<reason>.*)\.`,
			`SELECT '‹clock ' || max(p.at, $from) || '›' AS a, '‹clock ' || r.at || '›' AS b, p.data ->> 'reason' AS
			reason FROM past p JOIN past r ON r.pos = (SELECT min(pos) FROM past x WHERE x.kind = 'queue_resumed' AND
			x.data ->> 'queue' = $gq AND x.pos > p.pos) WHERE p.kind = 'queue_paused' AND p.data ->> 'queue' = $gq
			AND r.at > $from`, false},
		{"", "li pause", `Queue (?P<q>\S+) is paused since (?P<a>\S+), by \S+: (?P<reason>.*)\.`,
			`SELECT '‹clock ' || max(p.at, $from) || '›' AS a, p.data ->> 'reason' AS reason FROM past p WHERE p.kind
			= 'queue_paused' AND p.data ->> 'queue' = $gq ORDER BY p.pos DESC LIMIT 1`, false},

		{"/failures", "p", window + `: (?P<n>\d+) attempts? failed or (?:was|were) taken back, in ` +
			`(?P<groups>\d+) groups?\.`,
			`SELECT '‹clock ' || $end || '›' AS "to", count(*) AS n, count(DISTINCT t.queue || ' ' || coalesce(f.data
			->> 'error_code', f.data ->> 'reason')) AS groups FROM past f JOIN made t ON t.job = f.job WHERE f.kind
			IN ('failed', 'reclaimed') AND f.at > $from AND f.at <= $end`, false},
		{"/failures", "failures/Workers", `(?P<text>.*)`, mostSQL("f.worker"), false},
		{"/failures", "failures/Versions", `(?P<text>.*)`, mostSQL("c.version"), false},
		{"/failures", "failures/Versions", `only (?P<text>.*)`, `WITH f AS (` + groupSQL + `) SELECT DISTINCT
			c.version AS text FROM f JOIN claims c ON c.job = f.job AND c.attempt = f.attempt`, false},
		{"/failures", "failures/Jobs now", `(?P<text>.*)`, `WITH states (i, state) AS (VALUES (1, 'queued'), (2,
			'claimed'), (3, 'running'), (4, 'succeeded'), (5, 'failed'), (6, 'cancelled')), n AS (SELECT i, s.state,
			count(*) AS n FROM states s JOIN made c ON c.state = s.state WHERE c.job IN (SELECT job FROM (` +
			groupSQL + `)) GROUP BY i ORDER BY i)
			SELECT group_concat(n || ' ' || state, ', ') AS text FROM n`, false},
		{"/failures", "failures/Detail", `(?P<text>.*)`, detailSQL, false},
		{"/failures", "failures/Code", `(?P<text>.*)`, `SELECT $rowb AS text`, false},
		{"/failures", "failures/Act", `(?:Retry (?P<n>\d+)…)?`, `WITH f AS (` + groupSQL + `), n AS (SELECT count(*)
			AS n FROM made m JOIN f ON f.job = m.job WHERE m.state = 'failed' AND NOT EXISTS (SELECT 1 FROM past x
			WHERE x.job = m.job AND x.kind IN ('failed', 'reclaimed') AND x.pos > f.pos)) SELECT coalesce(nullif(n,
			0), '') AS n FROM n`, false},
		{"/failures", "svg label", `(?P<n>\d+) attempts? over the window`, `SELECT count(*) AS n FROM past f JOIN
			made t ON t.job = f.job WHERE f.kind IN ('failed', 'reclaimed') AND f.at > $from AND f.at <= $end GROUP
			BY t.queue, coalesce(f.data ->> 'error_code', f.data ->> 'reason') HAVING count(*) = CAST($gn AS integer)
			LIMIT 1`, false},
		{"/workers", "p", `(?P<n>\d+) process(?:es)?(, (?P<silent>\d+) silent)?\. Also those that have stopped`,
			`SELECT count(*) AS n, coalesce(nullif(sum(NOT later AND 86400 * (julianday($now) - julianday(seen)) >
			` + patienceSQL + `), 0), '') AS silent FROM processes p WHERE stopped IS NULL AND ` + presentNow, false},
		{"/queues/{queue}", "p", window, `SELECT '‹clock ' || $end || '›' AS "to"`, false},
		{"/queues/{queue}", "text", `.*`, "", false}, // of an axis
		{"/queues/{queue}", "h2", `Wait, p99`, "", false},
		{"/queues/{queue}", "th", `.*`, "", false},
		{"/queues/{queue}", "pairs", `.*, as without a default`, "", false},
		{"/queues/{queue}", "p figure", `.*`, `SELECT ready || ' ' || held || ' ' || ok || ' ' || share || ' ' ||
			p99 FROM (` + tilesSQL + `)`, true},
		{"/queues/{queue}", "p quiet", `(?:none waits|the oldest (?P<age>\S+))(?:, (?P<later>\d+) later)?`,
			`SELECT CASE ready WHEN 0 THEN '' ELSE oldest END AS age, CASE later WHEN 0 THEN '' ELSE later END AS later
			FROM (` + tilesSQL + `)`, false},
		{"/queues/{queue}", "p quiet", `(?P<failed>\S+) a minute`, `SELECT failed FROM (` + tilesSQL + `)`, false},
		{"/queues/{queue}", "p quiet", `of the last hour; half of them (?P<p50>.*)`, `SELECT p50 FROM (` +
			tilesSQL + `)`, false},
		{"/queues/{queue}", "causes/Detail", `(?P<text>.*)`, strings.NewReplacer("$rowa", "$name",
			"$rowb", "$rowa").Replace(detailSQL), false},
		{"/queues/{queue}", "causes/Cause", `(?P<text>.*)`, `SELECT $rowa AS text`, false},
		{"/queues/{queue}", "figcaption", `Attempts every 3m .*|Run time p99 p50|Wait .* p99 p90 p50`, "", false},
		{"/queues/{queue}", "svg label", `Depth: ready up to (?P<a>\d+), later up to (?P<b>\d+), ` +
			`held up to (?P<c>\d+)`,
			`SELECT max(READY) AS a, max(LATER) AS b, max(HELD) AS c FROM (` + depthSQL + `)`, false},
		{"/queues/{queue}", "svg label", `Wait from ready to claimed: p99 up to (?P<a>\S+) s, p90 up to ` +
			`(?P<b>\S+) s, p50 up to (?P<c>\S+) s`,
			`SELECT '‹number ' || max(CAST(substr(P99, 9) AS real)) || '›' AS a, '‹number ' || max(CAST(substr(P90,
			9) AS real)) || '›' AS b, '‹number ' || max(CAST(substr(P50, 9) AS real)) || '›' AS c FROM (` +
				waitTimesSQL + `)`, false},
		{"/queues/{queue}", "p head", `.*`, fmtAtoms(`p.job IN (SELECT job FROM made WHERE queue =
			$name AND state = 'queued')`) + ` UNION SELECT '‹time ' || at || '›' FROM which UNION SELECT $pos ||
			' ‹time ' || $now || '›' UNION SELECT '‹time ' || run_at || '› ‹roughly ' || run_at || ' ' || $now || '› '
			|| failures || ' ' || max_attempts FROM made WHERE queue = $name AND state = 'queued' UNION SELECT
			row_number() OVER (ORDER BY job) FROM made WHERE queue = $name AND state = 'queued' UNION SELECT
			row_number() OVER (ORDER BY boot) || coalesce(' ‹time ' || stopped || '› ‹roughly ' || stopped || ' ' ||
			$now || '›', '') FROM processes UNION SELECT '‹time ' || at || '› ‹roughly ' || at || ' ' || $now || '›'
			|| ' ' || (data ->> 'reason') FROM past WHERE kind = 'queue_paused'`, true},
		{"/queues/{queue}", "svg label", `Attempts every 3m: succeeded up to (?P<a>\d+), failed up to ` +
			`(?P<b>\d+), lost up to (?P<c>\d+)`,
			`SELECT max(SUCCEEDED) AS a, max(FAILED) AS b, max(LOST) AS c FROM (` + endedSQL + `)`, false},
		{"/queues/{queue}", "svg label", `Run time: p99 up to (?P<a>\S+) s, p50 up to (?P<b>\S+) s`,
			`SELECT '‹number ' || max(CAST(substr(P99, 9) AS real)) || '›' AS a, '‹number ' || max(CAST(substr(P50,
			9) AS real)) || '›' AS b FROM (` +
				runTimesSQL + `)`, false},

		{"/diff", "p", `(?P<from>\S+ \S+) \(pos (?P<a>\d+)\) to (?P<to>\S+ \S+) \(pos (?P<b>\d+)\): what ` +
			`changed: (?P<n>\d+) events?\. ⇄ Swap`, `SELECT '‹millis ' || $from || '›' AS "from",
			'‹millis ' || $end || '›' AS "to",
			coalesce(max(pos) FILTER (WHERE at <= $from), 0) AS a, max(pos) AS b, count(*) FILTER (WHERE at > $from)
			AS n FROM past WHERE at <= $end`, false},
		{"/diff", "jobs by state/", `(?P<n>\d+)`, `SELECT count(*) AS n FROM moved WHERE old = $rowa AND '→ ' ||
			upper(new) = $column`, false},
		{"/lanes", "li", `(?P<at>\S+) .*`, fmtAtoms(`p.kind IN ('cancelled', 'retried', 'rescheduled', 'erased',
			'queue_paused', 'queue_resumed', 'rebuilt', 'restored', 'queue_limited') AND p.at > $from AND p.at <=
			$end`) +
			` UNION SELECT count(*) FROM which GROUP BY kind, actor, atom UNION SELECT '‹day ' || at || '›' FROM ` +
			`which`, true},
		{"", "li deploy", `From .*`, clocksSQL + ` UNION SELECT worker || ' ' || version FROM processes`, true},
		{"/diff", "li", `(?P<at>\S+) .*`, fmtAtoms(`p.kind IN ('cancelled', 'retried', 'rescheduled', 'erased',
			'queue_paused', 'queue_resumed', 'rebuilt', 'restored', 'queue_limited') AND p.at > $from AND p.at <=
			$end`) +
			` UNION SELECT count(*) FROM which GROUP BY kind, actor, atom`, true},
		{"/diff", "pre", `.*`, clocksSQL + ` UNION SELECT pid || ' ' || host || ' ' || version FROM processes UNION
			SELECT job FROM made UNION SELECT count(*) - 5 FROM moved GROUP BY old, new UNION SELECT count(*) FROM
			claims WHERE end_pos IS NULL GROUP BY boot UNION SELECT '‹millis ' || seen || '›' FROM processes`, true},

		{"/incident", "p", window + `: (?P<n>\d+) events?\.`, `SELECT '‹clock ' || $end || '›' AS "to", count(*)
			AS n FROM past WHERE at > $from AND at <= $end`, false},
		{"/incident", "li", `\S+, pid (?P<pid>\d+) on \S+, version (?P<version>\S+), lost (?P<n>\d+) jobs?: ` +
			`its last heartbeat came at ` +
			`(?P<beat>\S+), and its loss was noticed at (?P<at>\S+)\.( It came back at (?P<back>\S+); ` +
			`(?P<refused>\S+) writes? (was|were) refused\.)?`,
			`WITH lost AS (SELECT c.*, r.data ->> 'last_heartbeat' AS last FROM claims c JOIN past r ON r.pos =
			c.end_pos WHERE outcome = 'reclaimed' AND CAST(pid AS text) = $gpid AND substr(ended_at, 12, 8) >= $gat
			AND substr(ended_at, 12, 8) < time($gat, '+10 minutes')), refused AS (SELECT p.* FROM past p JOIN lost l
			ON l.job = p.job AND l.attempt = p.attempt AND l.worker = p.worker WHERE p.kind = 'refused') SELECT pid,
			version, count(*) AS n, '‹clock ' || max(last) || '›' AS beat, '‹clock ' || min(ended_at) || '›' AS at,
			(SELECT '‹clock ' || min(at) || '›' FROM refused) AS back, (SELECT CASE count(*) WHEN 0 THEN '' WHEN 1
			THEN 'one' ELSE count(*) END FROM refused) AS refused FROM lost GROUP BY boot`, false},
		{"/incident", "text", `.*`, "", false}, // of an axis
		{"/incident", "figcaption", `Attempts every 3m .*`, "", false},
		{"/incident", "svg label", `Depth: ready up to (?P<a>\d+), later up to (?P<b>\d+), held up to (?P<c>\d+)`,
			`SELECT max(READY) AS a, max(LATER) AS b, max(HELD) AS c FROM (` +
				strings.ReplaceAll(depthSQL, "s.queue = $name AND ", "") + `)`, false},
		{"/incident", "svg label", `Attempts every 3m: succeeded up to (?P<a>\d+), failed up to (?P<b>\d+), ` +
			`lost up to (?P<c>\d+)`, `SELECT max(SUCCEEDED) AS a, max(FAILED) AS b, max(LOST) AS c FROM (` +
			strings.ReplaceAll(endedSQL, "queue = $name AND ", "") + `)`, false},
		{"/incident", "li", `(?P<w>\S+) on \S+, (?P<text>.*) \S+ on \S+ (?P<same>\d+ claims?: .*)`, `WITH names (i,
			outcome, name) AS (VALUES (0, '', 'open'), (1, 'succeeded', 'succeeded'), (2, 'failed', 'failed'), (3,
			'released', 'released'), (4, 'reclaimed', 'lost'), (5, 'cancelled', 'cancelled')), mine AS (SELECT i,
			name, count(*) AS n FROM claims c JOIN names n ON n.outcome = coalesce(c.outcome, '') WHERE worker = $gw
			AND coalesce(ended_at, $end) > $from GROUP BY i), late AS (SELECT count(*) AS n FROM past WHERE kind =
			'refused' AND worker = $gw AND at > $from AND at <= $end), said AS (SELECT sum(n) || CASE sum(n) WHEN 1
			THEN ' claim: ' ELSE ' claims: ' END || group_concat(n || ' ' || name, ', ' ORDER BY i) || (SELECT CASE n
			WHEN 0 THEN '' WHEN 1 THEN ', 1 write too late' ELSE ', ' || n || ' writes too late' END FROM late) AS
			text FROM mine) SELECT text, text AS same FROM said`, false},
		{"/incident", "li failures", `(?P<a>[\d:]+)(?:–(?P<b>[\d:]+))? (?P<n>\d+) attempts? in (?P<q>\S+) ` +
			`failed: (?P<code>\S+)(?: (?P<times>\d+) times)?`,
			`SELECT count(*) AS n, CASE count(*) WHEN 1 THEN '' ELSE count(*) END AS times FROM past f JOIN made t ON
			t.job = f.job WHERE f.kind IN ('failed', 'reclaimed') AND t.queue = $gq AND coalesce(f.data ->>
			'error_code', f.data ->> 'reason') = $gcode AND f.at > $from AND f.at <= $end AND substr(f.at, 12, 8)
			BETWEEN $ga AND coalesce(nullif($gb, ''), $ga)`, false},
		{"/incident", "li", `(?P<a>[\d:]+)(?:–(?P<b>[\d:]+))? .*`, inTimeline, true},
		{"/incident", "li operator", `(?P<a>[\d:]+)(?:–(?P<b>[\d:]+))? .*`, inTimeline, true},
		{"/incident", "failures/Detail", `(?P<text>.*)`, detailSQL, false},
		{"/incident", "failures/Cause", `(?P<text>.*)`, `SELECT $rowb AS text`, false},
		{"/", "failures of the last hour/Detail", `(?P<text>.*)`, strings.ReplaceAll(detailSQL, "$from", "$hour"),
			false},
		{"/", "failures of the last hour/Cause", `(?P<text>.*)`, `SELECT $rowb AS text`, false},

		{"/integrity", "p verdict", `✓ Verified (?P<n>\d+) of (?P<tail>\d+) events, 2026-03-15 08:00:00\+00:00: .*`,
			`SELECT count(*) AS n, max(pos) AS tail FROM history`, false},
		{"/integrity", "p", `The whole ledger is verified each day at (?P<at>\S+), and what is new every minute\.`,
			`SELECT '03:00' AS at`, false},
		{"/integrity", "p", `pos (?P<tail>\d+), (?P<at>\S+ \S+)\. .*`, `SELECT max(pos) AS tail, '‹millis ' ||
			max(at) || '›' AS at FROM history`, false},
		{"/integrity", "p", `None of 34 checks found anything\. The whole ledger was last verified ` +
			`2026-03-15 08:00:00\+00:00, up to pos (?P<tail>\d+), in \S+\. .*`,
			`SELECT max(pos) AS tail FROM history`, false},
		// What doctor says of files and processes is in no view; it is compared with the command elsewhere.
		{"/integrity", "li problem", `problem (?P<text>.* \(D\d\d\) .*)`, `SELECT $gtext AS text`, false},
		{"/integrity", "li warning", `warning (?P<text>.* \(D\d\d\) .*)`, `SELECT $gtext AS text`, false},
		{"/integrity", "events/WHAT", `.*`, fmtAtoms(`p.pos = CAST($rowa AS integer)`), true},
		{"/jobs", "p", `More than (?P<n>\d+) jobs\.`, `SELECT min(50, count(*) - 1) AS n FROM made`,
			false},
		{"/jobs", "p", `(?P<n>\d+) jobs?\.`, `SELECT count(*) AS n FROM made`, false},
		{"/jobs", "jobs/ERROR", `.*`, fmtAtoms(`p.job = $rowa`), true},
		{"/jobs/{job}", "title", `(?P<job>\S+) · jobledger`, `SELECT $name AS job`, false},
		{"/jobs/{job}", "h1", `(?P<text>.*)`, `SELECT queue || coalesce(' · ' || (data ->> 'key'), '') AS text FROM
			made JOIN past USING (job) WHERE job = $name AND kind = 'enqueued'`, false},
		{"/jobs/{job}", "pre", `0{8}( [0-9a-f]{2})+ \|.*`, "", false}, // held by TestPageOfAJobShowsItsTexts
		{"/jobs/{job}", "p quiet", `Job (?P<job>\S+)`, `SELECT $name AS job`, false},
		{"/jobs/{job}", "", `.*`, fmtAtoms(`p.job = $name`) + ` UNION SELECT $pos || ' ‹time ' || $now ||
			'› ‹millis ' || $now || '›' UNION SELECT coalesce(data ->> 'priority', 0) FROM past WHERE job = $name AND
			kind = 'enqueued' UNION SELECT count(*) FROM past WHERE job = $name UNION SELECT count(*) FROM past WHERE
			job = $name GROUP BY kind UNION SELECT count(*) - 2 FROM past WHERE job = $name AND kind = 'heartbeat'
			GROUP BY attempt UNION SELECT '‹gap ' || coalesce(lag(at) OVER (ORDER BY pos), at) || ' ' || at || '›'
			FROM past WHERE job = $name UNION SELECT failures || ' ' || max_attempts FROM made WHERE job = $name
			UNION SELECT max(attempt) FROM claims WHERE job = $name UNION SELECT length(CAST(payload AS blob)) || ' '
			|| payload || ' ' || coalesce(length(CAST(result AS blob)) || ' ' || CAST(result AS text), '') FROM
			current WHERE id = $name`, true},
		{"/tail", "p", `As of pos (?P<pos>\d+); without .*`, `SELECT $pos AS pos`, false},
		{"", "events/What", `.*`, fmtAtoms(`p.pos = CAST($rowa AS integer)`), true},
	}...)
}

const (
	doubleSQL = `SELECT p.pos AS pos FROM past p JOIN past s ON s.job = p.job AND s.kind = 'succeeded' AND
		s.data ->> 'result_sha256' <> p.data ->> 'offered_sha256' WHERE p.kind = 'refused' AND p.worker = $gwho
		AND p.pos = CAST($gpos AS integer)`
	// what people read of how an attempt failed
	causeSQL = `(CASE WHEN f.data ->> 'error_code' = 'exit_code' THEN 'exit ' || (f.data ->> 'exit_code') WHEN
		f.data ->> 'error_code' = 'signal' THEN 'signal ' || (f.data ->> 'signal') ELSE coalesce(f.data ->>
		'error_code', f.data ->> 'reason') || coalesce(' (exit ' || (f.data ->> 'exit_code') || ')', ' (signal ' ||
		(f.data ->> 'signal') || ')', '') END)`
	groupSQL = `SELECT f.* FROM past f JOIN made t ON t.job = f.job WHERE f.kind IN ('failed', 'reclaimed') AND
		t.queue = $rowa AND ` + causeSQL + ` = $rowb AND f.at > $from AND f.at <= $end`
	// detailSQL is the last detail of such a group.
	detailSQL = `WITH f AS (` + groupSQL + ` ORDER BY f.pos DESC LIMIT 1) SELECT replace(substr(data ->>
		'error_detail', 1, instr(data ->> 'error_detail' || char(10), char(10)) - 1), char(27), '\x1b') AS text
		FROM f`
)

func fmtAtoms(which string) string { return strings.Replace(atomsSQL, "%s", which, 1) }

// mostSQL names the most frequent values of a column of the claims that failed, with their counts.
func mostSQL(column string) string {
	return `WITH f AS (` + groupSQL + `), n AS (SELECT ` + column + ` AS name, count(*) AS n FROM f JOIN claims
		c ON c.job = f.job AND c.attempt = f.attempt GROUP BY 1), r AS (SELECT *, row_number() OVER (ORDER BY n
		DESC, name) AS i, count(*) OVER () AS whole FROM n) SELECT group_concat(name || ' ' || n, ', ') || CASE
		WHEN max(whole) > 3 THEN ', ' || (max(whole) - 3) || ' more' ELSE '' END AS text FROM r WHERE i <= 3`
}

// digits are words with a digit.
var digits = regexp.MustCompile(`[^\s,;()"“”=–]*\d[^\s,;()"“”=–]*`)

func wordsWithDigits(text string) (words []string) {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' && r != '\n' {
			return -1 // a page shows such bytes otherwise
		}
		return r
	}, text)
	for _, word := range digits.FindAllString(text, -1) {
		words = append(words, strings.Trim(word, `.:'{}[]`))
	}
	return words
}

// explained reports whether a text is as SQL has it; why is what it should be, where that is known.
func (v *copiedViews) explained(t *testing.T, route string, f figure) (ok bool, why string) {
	t.Helper()
	where := f.where
	if f.titles != nil {
		where += "/" + f.column
	}
	for _, text := range shownTexts {
		if text.page != "" && text.page != route || text.where != "" && text.where != where &&
			!(strings.HasSuffix(text.where, "/") && strings.HasPrefix(where, text.where)) {
			continue
		}
		pattern := regexp.MustCompile("^(?:" + text.pattern + ")$")
		groups := pattern.FindStringSubmatch(f.text)
		if groups == nil {
			continue
		}
		if text.rows == "" {
			return true, ""
		}
		for i, name := range pattern.SubexpNames() {
			v.values["g"+name] = groups[i]
		}
		if !strings.Contains(text.pattern, "(?P<q>") {
			v.values["gq"] = ""
		}
		v.values["column"] = f.column
		for i, cell := range f.cells[:min(len(f.cells), 2)] {
			v.values["row"+string("ab"[i])] = cell
		}
		columns, rows := v.rows(text.rows)
		why = ""
		if text.words {
			var known []string
			for _, row := range rows {
				known = append(known, wordsWithDigits(row[0])...)
			}
			for _, word := range wordsWithDigits(f.text) {
				if !slices.Contains(known, word) {
					why += " no " + word
				}
			}
			return why == "", why
		}
		if len(rows) != 1 {
			why = "SQL has no row"
			continue
		}
		for i, column := range columns {
			if got := groups[pattern.SubexpIndex(column)]; got != rows[0][i] {
				why += " " + column + " should be " + rows[0][i]
			}
		}
		if why == "" {
			return true, ""
		}
	}
	return false, why
}
