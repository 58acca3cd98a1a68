package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// countersByView are the counters of /metrics, and what the views say. Each row is the labels and the value.
var countersByView = map[string]string{
	"jobledger_events_total": `SELECT 'kind="' || h.kind || '",queue="' || coalesce(c.queue, '') || '"', count(*)
		FROM history h LEFT JOIN current c ON c.id = h.job GROUP BY h.kind, c.queue`,
	"jobledger_attempts_total": `SELECT 'queue="' || queue || '",outcome="' || outcome || '"', count(*)
		FROM attempts WHERE outcome IS NOT NULL GROUP BY queue, outcome`,
	"jobledger_failures_total": `SELECT 'queue="' || c.queue || '",code="' ||
		coalesce(h.data ->> 'error_code', h.data ->> 'reason') || '"', count(*)
		FROM history h JOIN current c ON c.id = h.job WHERE h.kind IN ('failed', 'reclaimed')
		GROUP BY c.queue, coalesce(h.data ->> 'error_code', h.data ->> 'reason')`,
	"jobledger_refused_writes_total": `SELECT 'queue="' || c.queue || '",command="' ||
		(h.data ->> 'command') || '"', count(*)
		FROM history h JOIN current c ON c.id = h.job
		WHERE h.kind = 'refused'
		GROUP BY c.queue, h.data ->> 'command'`,
	"jobledger_double_runs_total": `SELECT 'queue="' || c.queue || '"', count(*)
		FROM history h JOIN current c ON c.id = h.job JOIN history s ON s.job = h.job AND s.kind = 'succeeded'
		WHERE h.kind = 'refused' AND h.data ->> 'command' = 'succeed'
		AND coalesce(h.data ->> 'offered_sha256', '') <> coalesce(s.data ->> 'result_sha256', '') GROUP BY c.queue`,
	"jobledger_job_wait_seconds_count": `SELECT 'queue="' || c.queue || '"', count(*)
		FROM history h JOIN current c ON c.id = h.job WHERE h.kind = 'claimed' GROUP BY c.queue`,
	"jobledger_job_run_seconds_count": `SELECT 'queue="' || queue || '",outcome="' || outcome || '"', count(*)
		FROM attempts WHERE outcome IS NOT NULL GROUP BY queue, outcome`,
	"jobledger_heartbeat_gap_seconds_count": `SELECT 'queue="' || c.queue || '"', count(*)
		FROM history h JOIN current c ON c.id = h.job WHERE h.kind = 'heartbeat' GROUP BY c.queue`,
}

// sampleLine is a line of /metrics with a value.
var sampleLine = regexp.MustCompile(`(?m)^(jobledger_\w+)(?:\{(.*)\})? (\S+)$`)

// Each counter of /metrics is what SQL over the views says.
func TestMetricsAreWhatTheViewsSay(t *testing.T) {
	t.Parallel()
	s, get := serveNight(t)
	got := make(map[string]map[string]float64)
	for _, m := range sampleLine.FindAllStringSubmatch(get("/metrics"), -1) {
		value, err := strconv.ParseFloat(m[3], 64)
		check(t, err)
		if got[m[1]] == nil {
			got[m[1]] = make(map[string]float64)
		}
		got[m[1]][m[2]] = value
	}
	for name, query := range countersByView {
		sum := 0.0
		for labels, value := range s.valuesOf(query) {
			if sum += value; got[name][labels] != value {
				t.Errorf("%s{%s} is %v, and by the view %v", name, labels, got[name][labels], value)
			}
		}
		for _, value := range got[name] {
			sum -= value
		}
		if sum != 0 || len(got[name]) == 0 {
			t.Errorf("%s: the sum of its %d samples differs by %v", name, len(got[name]), sum)
		}
	}
	runs := make(map[string]float64)
	check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT 'queue="' || queue || '",outcome="' || outcome || '"',
			claimed_at, ended_at FROM attempts WHERE outcome IS NOT NULL`)
		check(t, err)
		defer rows.Close()
		for rows.Next() {
			var labels, from, to string
			check(t, rows.Scan(&labels, &from, &to))
			begin, err := time.Parse(time.RFC3339, from)
			check(t, err)
			end, err := time.Parse(time.RFC3339, to)
			check(t, err)
			runs[labels] += end.Sub(begin).Seconds()
		}
		return rows.Err()
	}))
	for labels, seconds := range runs {
		if one := got["jobledger_job_run_seconds_sum"][labels]; math.Abs(one-seconds) > 1e-3 {
			t.Errorf("the runs of %s took %v s, and by the view %v", labels, one, seconds)
		}
	}
	if one := got["jobledger_counted_pos"][""]; one != got["jobledger_pos"][""] {
		t.Errorf("counted up to %v", one)
	}
}

// valuesOf returns the rows of a query: a text and a number.
func (s *scenario) valuesOf(query string) map[string]float64 {
	s.T.Helper()
	values := make(map[string]float64)
	if ledgertest.OnPostgres(s.T) { // data is a text there, too, and needs a cast
		query = strings.ReplaceAll(query, ".data ->>", ".data::json ->>")
	}
	err := s.Store.Read(s.T.Context(), func(tx *ledger.Tx) error {
		rows, err := tx.Query(s.T.Context(), strings.TrimSpace(query))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			var n int64
			if err := rows.Scan(&text, &n); err != nil {
				return err
			}
			values[text] = float64(n)
		}
		return rows.Err()
	})
	if err != nil {
		s.T.Fatal(fmt.Errorf("%s: %w", query, err))
	}
	return values
}
