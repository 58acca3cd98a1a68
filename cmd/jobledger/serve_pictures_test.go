package main

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/ledger/ledgertest"
)

// Each number of the pictures, and of the pages around them, is what SQL over the views says of that window.
func TestPicturesShowWhatTheViewsHave(t *testing.T) {
	ledgertest.OfSQLite(t) // its statements are those of SQLite
	t.Parallel()
	s, get := serveNight(t)
	dsn := s.Store.DSN()
	sql := func(format string, args ...any) string {
		return strings.TrimSpace(queried(t, dsn, fmt.Sprintf(format, args...)))
	}
	same := func(what string, got any, want string) {
		t.Helper()
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", what, got, want)
		}
	}
	for _, w := range ledgertest.Size([][2]string{{"00:30:00", "03:00:00"}},
		[][2]string{{"01:20:30", "01:49:59"}},
		[][2]string{{"00:30:00", "03:00:00"}, {"01:20:30", "01:49:59"}, {"00:00:00", "00:10:00"},
			{"02:00:00", "04:00:00"}, {"01:15:00", "01:17:00"}}) {
		from, to := "2026-03-15T"+w[0]+".000000Z", "2026-03-15T"+w[1]+".000000Z"
		window := url.Values{"from": {from}, "to": {to}}.Encode()
		ended := fmt.Sprintf("ended_at IS NOT NULL AND ended_at <= '%s'", to)
		live := fmt.Sprintf("FROM attempts WHERE claimed_at <= '%s' AND (ended_at IS NULL OR ended_at > "+
			"'%s')", to, from)
		var lanes struct {
			Claims, Joined int
			Lanes          []struct{ Worker, Host string }
			How, Count     []int
			Outcomes       []string
			Marks          []struct{ Twice bool }
		}
		read := func(path string, into any) {
			t.Helper()
			if err := json.Unmarshal([]byte(get(path)), into); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		for _, px := range []string{"", "&px=40", "&px=1200"} {
			read("/api/v1/lanes?"+window+px, &lanes)
			same("claims"+px, lanes.Claims, sql("SELECT count(*) %s", live))
			outcomes, bars := map[string]int{}, 0
			for i, how := range lanes.How {
				outcomes[lanes.Outcomes[how]] += lanes.Count[i]
				bars += lanes.Count[i]
			}
			same("claims of all bars"+px, bars, fmt.Sprint(lanes.Claims))
			same("joined"+px, lanes.Joined, fmt.Sprint(lanes.Claims-len(lanes.How)))
			for _, outcome := range lanes.Outcomes[1:] {
				same(outcome+px, outcomes[outcome], sql("SELECT count(*) %s AND %s AND outcome = '%s'", live,
					ended, outcome))
			}
			same("refused", len(lanes.Marks), sql("SELECT count(*) FROM history WHERE kind = 'refused' AND "+
				"at > '%s' AND "+
				"at <= '%s'", from, to))
		}
		if text := get("/lanes?" + window); !strings.Contains(text, fmt.Sprintf(": %d claims of %d workers",
			lanes.Claims,
			len(lanes.Lanes))) {
			t.Errorf("the page of lanes from %s to %s has not %d claims of %d workers", from, to, lanes.Claims,
				len(lanes.Lanes))
		}
		within := fmt.Sprintf("at > '%s' AND at <= '%s'", from, to)
		var failures struct {
			Items []struct {
				Code     string `json:"error_code"`
				Attempts int
				Jobs     int
			}
		}
		read("/api/v1/failures?"+window, &failures)
		all := 0
		for _, f := range failures.Items {
			all += f.Attempts
			if f.Code != "lease_expired" {
				where := fmt.Sprintf("FROM history WHERE kind = 'failed' AND %s AND data ->> 'error_code' = '%s'",
					within,
					f.Code)
				same(f.Code, f.Attempts, sql("SELECT count(*) %s", where))
				same("jobs with "+f.Code, f.Jobs, sql("SELECT count(DISTINCT job) %s", where))
			}
		}
		same("failures", all, sql("SELECT count(*) FROM history WHERE kind IN ('failed', 'reclaimed') AND "+
			"%s", within))
		same("the page of failures", strings.Contains(get("/failures?"+window),
			fmt.Sprintf(": %d attempts failed", all)),
			"true")
		var series struct{ Succeeded, Failed, Lost, Queued, Held []int }
		read("/api/v1/series?queue=mail&"+window, &series)
		for outcome, counts := range map[string][]int{"succeeded": series.Succeeded, "failed": series.Failed,
			"reclaimed": series.Lost} {
			sum := 0
			for _, n := range counts {
				sum += n
			}
			same("series of "+outcome, sum, sql("SELECT count(*) %s AND queue = 'mail' AND %s AND outcome = "+
				"'%s'", live,
				ended, outcome))
		}
		states := "SELECT count(*) FROM (SELECT job, max(pos) AS pos FROM history WHERE job IS NOT NULL " +
			"AND to_state IS " +
			"NOT NULL AND at <= '" + to + "' GROUP BY job) l JOIN history h ON h.pos = l.pos JOIN current c " +
			"ON c.id = " +
			"l.job WHERE c.queue = 'mail' AND h.to_state IN (%s)"
		same("queued at the end", series.Queued[len(series.Queued)-1], sql(states, "'queued'"))
		same("held at the end", series.Held[len(series.Held)-1], sql(states, "'claimed', 'running'"))
		events := sql("SELECT count(*) FROM history WHERE %s", within)
		same("events of the incident", strings.Contains(get("/incident?"+window), ": "+events+" events."), "true")
		same("events of the diff", strings.Contains(get("/diff?"+window), "what changed: "+events+
			" events<"), "true")
	}
	did := ""
	for _, pos := range []string{"2159", "3000"} {
		at := sql("SELECT at FROM history WHERE pos = %s", pos)
		rows := tableOf(t, get("/workers?at=pos:"+pos), `aria-label="workers"`)[1:]
		if len(rows) < 6 {
			t.Errorf("at %s there are only %d workers", pos, len(rows))
		}
		for _, row := range rows {
			did += row[5] + " "
			for i, outcome := range []string{"succeeded", "failed", "reclaimed"} {
				same(row[0]+" "+outcome, row[5+i], sql("SELECT count(*) FROM attempts a JOIN history h ON h.at "+
					"= a.ended_at AND "+
					"h.job = a.job AND h.kind = a.outcome WHERE a.worker = '%s' AND a.host || a.pid = '%s' AND "+
					"h.pos <= %s AND "+
					"a.ended_at > strftime('%%Y-%%m-%%dT%%H:%%M:%%f000Z', '%s', '-1 hour') AND outcome = '%s'", row[0],
					hostAndPID(row[9]), pos, at, outcome))
			}
		}
	}
	if strings.Trim(did, "0 ") == "" {
		t.Error("no worker did anything")
	}
	var moments struct {
		Items []struct {
			Kind  string
			Count int
		}
	}
	if err := json.Unmarshal([]byte(get("/api/v1/moments?px=8192")), &moments); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, m := range moments.Items {
		sum += m.Count
	}
	same("marks", sum, sql("SELECT (SELECT count(*) FROM history WHERE kind IN ('refused', "+
		"'reclaimed', 'queue_paused', "+
		"'queue_resumed', 'restored', 'rebuilt') OR kind = 'failed' AND to_state = 'failed') + "+
		"(SELECT count(*) FROM (SELECT v <> lag(v) OVER (PARTITION BY worker ORDER BY pos) AS changed "+
		"FROM (SELECT pos, "+
		"worker, coalesce(data ->> 'version', '') AS v FROM history WHERE kind = 'worker_started')) WHERE "+
		"changed)"))
}

// hostAndPID is the host and the pid of a process as the page of workers shows it.
func hostAndPID(process string) string {
	var pid, host string
	if _, err := fmt.Sscanf(strings.ReplaceAll(process, ",", " "), "pid %s on %s", &pid, &host); err != nil {
		return process
	}
	return host + pid
}

// TestLanesMapLeavesOutImport: the map of the lanes ends with the last event that the import brought, not
// with the import, which was hours later.
func TestLanesMapLeavesOutImport(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	s, get := serveNight(t)
	page := get("/lanes?from=2026-03-15T00:00:00Z&to=2026-03-15T01:00:00Z")
	address, err := url.Parse(html.UnescapeString(regexp.MustCompile(`data-map="([^"]*)"`).FindStringSubmatch(
		page)[1]))
	check(t, err)
	to, err := time.Parse(time.RFC3339, address.Query().Get("to"))
	check(t, err)
	last := strings.TrimSpace(queried(t, s.Store.DSN(), "SELECT max(at) FROM history WHERE kind <> 'imported'"))
	if got := to.UTC().Format("2006-01-02T15:04:05.000000Z"); got != last {
		t.Errorf("the map ends at %s, want %s", got, last)
	}
}

// Of two rows each has at most one mark for a column of time, which counts what it stands for, and a pause
// has its end.
func TestMomentsInTwoRows(t *testing.T) {
	t.Parallel()
	s, get := serveNight(t)
	sql := func(statement string) string { return strings.TrimSpace(queried(t, s.Store.DSN(), statement)) }
	var answer struct {
		Items []struct {
			Pos, Count int
			At, Until  time.Time
			Kind       string
			Row        int
		}
	}
	const from, to, px = "2026-03-15T00:00:00Z", "2026-03-15T04:00:00Z", 120
	check(t, json.Unmarshal([]byte(get(fmt.Sprintf("/api/v1/moments?rows=2&px=%d&from=%s&to=%s", px, from, to))),
		&answer))
	begin, err := time.Parse(time.RFC3339, from)
	check(t, err)
	failed, pauses := 0, 0
	taken := make(map[[2]int]bool)
	for _, m := range answer.Items {
		if m.Kind == "queue_paused" {
			pauses++
			if m.Until.Sub(m.At) != 20*time.Minute || m.Row != 1 {
				t.Errorf("a pause from %v to %v in row %d, want 20 minutes in row 1", m.At, m.Until, m.Row)
			}
			continue
		}
		column := [2]int{m.Row, int(m.At.Sub(begin) / (4 * time.Hour / px))}
		if taken[column] {
			t.Errorf("row %d has two marks in column %d", column[0], column[1])
		}
		if taken[column] = true; m.Row == 2 {
			failed += m.Count
		}
	}
	want := sql("SELECT count(*) FROM history WHERE (kind = 'refused' OR kind = 'failed' AND " +
		"to_state = 'failed') AND at >= '" + from + "' AND at <= '" + to + "'")
	if fmt.Sprint(failed) != want || pauses != 1 {
		t.Errorf("%d failed or came too late, and %d pauses; want %s and 1", failed, pauses, want)
	}
}
