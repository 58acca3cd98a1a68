package audit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
	"jobledger/projection/internal/historytest"
)

// TestVerifyFindsWrongLimits alters the events and the row of a queue that had limits.
func TestVerifyFindsWrongLimits(t *testing.T) {
	t.Parallel()
	file := recordedHistory(t, "v3limits.jsonl")
	for name, test := range map[string]struct{ damage, code, detail string }{
		"nothing": {"SELECT 1", "", ""},
		"a claim above the limit": {
			// The end of the first claim comes after the second claim, as with two jobs at once.
			`UPDATE events SET job = 2, kind = 3, to_state = 3, data = null WHERE pos = 5`,
			audit.FindOverLimit, "claimed although 1 of the queue mail were live, and the limit was 1"},
		"a limit that was lower": {`UPDATE events SET data = replace(data, '"running":1,', '') WHERE pos = 1`,
			audit.FindOverLimit, "it says limited true, but limits of the queue mail in force: false"},
		"another row": {`UPDATE limits SET running = 7`, audit.FindLimit, "the table says 7, the events say null"},
		"a claim before its rate": {
			`UPDATE events SET data = replace(data, '"running":1,', '"running":1,"rate":1,"rate_per":86400,')
			WHERE pos = 1`,
			audit.FindOverLimit, "claimed although the rate of the queue mail let the next job start at 2026-03-03"},
		"another count of starts": {`UPDATE limits SET used_until = 7`, audit.FindLimit,
			"the table says 7, the events say null"},
		"another ageing": {`UPDATE limits SET ageing = 7`, audit.FindLimit,
			"the table says 7, the events say null"},
		"another rate": {`UPDATE limits SET rate = 7`, audit.FindLimit, "the table says 7, the events say null"},
		"no row":       {`DELETE FROM limits`, audit.FindLimit, "it has no row in the table limits"},
		"a further row": {`INSERT INTO limits (queue, grp, running, since, actor) VALUES (1, 'x', 7, 1, 1)`,
			audit.FindLimit,
			"belongs to no event"},
	} {
		t.Run(name, func(t *testing.T) {
			v := damaged(t, file, test.damage)
			found := false
			for _, f := range v.Findings {
				found = found || f.Code == test.code && strings.Contains(f.Detail, test.detail)
			}
			if found != (test.code != "") || test.code == "" && len(v.Findings) > 0 {
				t.Errorf("got %+v, want %q", v.Findings, test.detail)
			}
		})
	}
}

// TestVerifyFindsWrongForms alters what a queue takes, and what a job of it is.
func TestVerifyFindsWrongForms(t *testing.T) {
	t.Parallel()
	file := recordedHistory(t, "v27-form.jsonl")
	for name, test := range map[string]struct{ damage, code, detail string }{
		"a queue for other jobs": {`UPDATE events SET data = replace(data, ',"commands":true', '') WHERE pos = 1`,
			audit.FindCommand, `form "argv", where the jobs of the queue slow carry their commands: false`},
		"another job": {`UPDATE events SET data = replace(data, ',"form":"argv"', '') WHERE pos = 2`,
			audit.FindCommand, `form "", where the jobs of the queue slow carry their commands: true`},
		"no label": {`UPDATE events SET data = replace(data, '"jl:argv"', '"jl:other"') WHERE pos = 2`,
			audit.FindForm, `form "argv"`},
		"a label that is taken away": {
			`UPDATE events SET data = replace(data, '"jl:argv"', '"jl:other"') WHERE pos = 4`,
			audit.FindIllegal, "edited without the label jl:argv"},
		"another row": {`UPDATE jobs SET more = replace(more, ',"form":"argv"', '')`, audit.FindDiffers, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := damaged(t, file, test.damage)
			if !slices.ContainsFunc(v.Findings, func(f audit.Finding) bool {
				return f.Code == test.code && strings.Contains(f.Detail, test.detail)
			}) {
				t.Errorf("got %+v, want %s %q", v.Findings, test.code, test.detail)
			}
		})
	}
}

// TestVerifyFindsWrongExceptions alters the events and the rows of a queue where one group may have more.
func TestVerifyFindsWrongExceptions(t *testing.T) {
	file := recordedHistory(t, "v7-exceptions.jsonl")
	for name, test := range map[string]struct{ damage, code, detail string }{
		"nothing": {"SELECT 1", "", ""},
		"a claim above the exception": {
			`UPDATE events SET data = replace(data, '"running":2', '"running":1') WHERE pos = 2`,
			audit.FindOverLimit,
			`claimed although 1 of the group "a" of the queue mail were live, and the limit was 1`},
		"no exception": {`UPDATE events SET data = replace(data, ',"running":2', '') WHERE pos = 2`,
			audit.FindOverLimit,
			`claimed although 1 of the group "a" of the queue mail were live, and the limit was 1`},
		"another exception": {`UPDATE limits SET running = 7 WHERE grp = 'a'`, audit.FindLimit,
			`group "a" of the queue mail: the table says 7, the events say 2`},
		"another group": {`UPDATE limits SET grp = 'z' WHERE grp = 'a'`, audit.FindLimit,
			`group "z" of the queue mail: its row in the table limits belongs to no event`},
		"no row": {`DELETE FROM limits WHERE grp = 'a'`, audit.FindLimit,
			`group "a" of the queue mail: it has no row in the table limits`},
		"no row of the queue": {`DELETE FROM limits WHERE grp = ''`, audit.FindLimit,
			"queue mail: it has no row in the table limits"},
	} {
		t.Run(name, func(t *testing.T) {
			v := damaged(t, file, test.damage)
			found := false
			for _, f := range v.Findings {
				found = found || f.Code == test.code && strings.Contains(f.Detail, test.detail)
			}
			if found != (test.code != "") || test.code == "" && len(v.Findings) > 0 {
				t.Errorf("got %+v, want %q", v.Findings, test.detail)
			}
		})
	}
}

// TestVerifyFindsWrongGroupRates alters the events and the rows of a queue with a rate of each group.
func TestVerifyFindsWrongGroupRates(t *testing.T) {
	file := recordedHistory(t, "v8-group-rates.jsonl")
	for name, test := range map[string]struct{ damage, code, detail string }{
		"nothing": {"SELECT 1", "", ""},
		"a claim above the rate": {
			`UPDATE events SET data = replace(data, '"group_rate_per":3', '"group_rate_per":4') WHERE pos = 1`,
			audit.FindOverLimit, `claimed although the rate of the group "a" of the queue mail let the next job ` +
				`start at 2026-03-03T10:00:10.123456Z`},
		"another rate": {`UPDATE limits SET group_rate = 7 WHERE grp = ''`, audit.FindLimit,
			"the table says 7, the events say 1"},
		"another count of starts": {`UPDATE group_rates SET used_until = 7 WHERE grp = 'a'`, audit.FindLimit,
			`group "a" of the queue mail: the table says`},
		"no row": {`DELETE FROM group_rates WHERE grp = 'b'`, audit.FindLimit,
			`group "b" of the queue mail: it has no row in the table group_rates`},
		"a further row": {`INSERT INTO group_rates SELECT queue, 'z', 5 FROM group_rates LIMIT 1`, audit.FindLimit,
			`group "z" of the queue mail: its row in the table group_rates belongs to no claim`},
		"a group that may start at once": {
			`UPDATE group_heads SET eligible_at = run_at WHERE grp = 'a'`, audit.FindGroup,
			"the events say 2026-03-03T10:00:12.123456Z"},
	} {
		t.Run(name, func(t *testing.T) {
			v := damaged(t, file, test.damage)
			found := false
			for _, f := range v.Findings {
				found = found || f.Code == test.code && strings.Contains(f.Detail, test.detail)
			}
			if found != (test.code != "") || test.code == "" && len(v.Findings) > 0 {
				t.Errorf("got %+v, want %q", v.Findings, test.detail)
			}
		})
	}
}

// TestVerifySinceCountsLiveClaims records a claim above the limit, and verifies from each event before it.
func TestVerifySinceCountsLiveClaims(t *testing.T) {
	events := historytest.Read(t, "v3limits.jsonl")
	beat := &event.Heartbeat{LeaseUntil: events[4].At.Add(time.Minute)}
	events[4].Body, events[4].To = beat, event.Running
	s := ledgertest.Open(t)
	historytest.Record(t, s, events)
	for since := range int64(6) {
		err := s.Read(t.Context(), func(tx *ledger.Tx) error {
			v, err := audit.VerifySince(t.Context(), tx, since, nil)
			if err != nil {
				return err
			}
			if len(v.Findings) != 1 || v.Findings[0].Code != audit.FindOverLimit || v.Findings[0].Pos != 6 {
				t.Errorf("since %d: %+v, want one %s at 6", since, v.Findings, audit.FindOverLimit)
			}
			w, err := audit.VerifyWindow(t.Context(), tx, since, 6, nil)
			if err == nil && (len(w.Findings) != 1 || w.Findings[0].Code != audit.FindOverLimit) {
				t.Errorf("window since %d: %+v, want one %s", since, w.Findings, audit.FindOverLimit)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestVerifyFindsWrongGroups alters the events and the rows of a queue with groups.
func TestVerifyFindsWrongGroups(t *testing.T) {
	t.Parallel()
	file := recordedHistory(t, "v3groups.jsonl")
	for name, test := range map[string]struct{ damage, code, detail string }{
		"nothing": {"SELECT 1", "", ""},
		"a claim above the limit of the group": {
			`UPDATE events SET kind = 3, to_state = 3, data = null WHERE pos = 11`, audit.FindOverLimit,
			`claimed although 1 of the group "a" of the queue mail were live, and the limit was 1`},
		"a group that is not blocked": {`UPDATE group_heads SET eligible_at = run_at WHERE grp = 'a'`,
			audit.FindGroup,
			`group "a" of the queue mail: the table says 2026-03-03T10:00:04.123456Z, the events say null`},
		"a group that is blocked": {`UPDATE group_heads SET eligible_at = null WHERE grp = 'b'`,
			audit.FindGroup, `group "b" of the queue mail: the table says null`},
		"another claim": {`UPDATE group_heads SET served = 9 WHERE grp = 'a'`, audit.FindGroup,
			"the table says 9, the events say 12"},
		"a claim to come": {`UPDATE group_heads SET served = 99, served_at = 1 WHERE grp = 'a'`, audit.FindGroup,
			"the table says 99, the events say 12"},
		"another time": {`UPDATE group_heads SET run_at = run_at + 1 WHERE grp = 'b'`, audit.FindGroup,
			"the table says"},
		"another queue": {`UPDATE group_heads SET queue = 77 WHERE grp = 'b'`, audit.FindGroup, "the table says"},
		"no row":        {`DELETE FROM group_heads WHERE grp = 'b'`, audit.FindGroup, "it has no row"},
		"a further row": {`INSERT INTO group_heads SELECT queue, 'c', lane, run_at, 0, 0, 1 FROM group_heads
			LIMIT 1`, audit.FindGroup,
			`group "c" of the queue mail: its row in the table group_heads belongs to no queued job`},
	} {
		t.Run(name, func(t *testing.T) {
			v := damaged(t, file, test.damage)
			found := false
			for _, f := range v.Findings {
				found = found || f.Code == test.code && strings.Contains(f.Detail, test.detail)
			}
			if found != (test.code != "") || test.code == "" && len(v.Findings) > 0 {
				t.Errorf("got %+v, want %q", v.Findings, test.detail)
			}
		})
	}
}
