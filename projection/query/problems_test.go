package query_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/follow"
	"jobledger/projection/query"
	"jobledger/projection/verdict"
)

// lineOf is a problem in short: its rule and what it is about.
func lineOf(p verdict.Problem) string {
	about := p.Queue + p.Schedule.Spec.Name
	for _, w := range p.Workers {
		about += w.Name + ","
	}
	return string(p.Code) + " " + strings.TrimSuffix(about, ",")
}

// watch is a reader that goes along a ledger as a server does.
type watch struct {
	*ledger.Store
	recent *verdict.Recent
	moves  follow.Transitions
}

// at returns what is listed at a moment; each is later than the one before.
func (w *watch) at(t *testing.T, at time.Time) (found []verdict.Problem) {
	t.Helper()
	err := w.Read(t.Context(), func(tx *ledger.Tx) error {
		m, err := projection.AtTime(t.Context(), tx, at)
		if err != nil {
			return err
		}
		if w.recent == nil {
			if w.recent, w.moves.Pos, err = verdict.Begin(t.Context(), tx, at, m.Pos, m.Pos); err != nil {
				return err
			}
		}
		var failed error
		err = w.moves.Read(t.Context(), tx, m.Pos, verdict.Feed(t.Context(), tx, w.recent, &failed))
		if err = cmp.Or(err, failed); err == nil {
			found, err = query.Problems{At: m, Recent: w.recent}.Read(t.Context(), tx)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(p verdict.Problem) bool { return p.Level == verdict.Note })
}

// Each incident of the bad night is named within a minute of its first sign, and no longer a quarter of an
// hour after its end; nothing else is listed. Presence was not recorded: what charlie did last shows when it
// fell silent.
func TestBadNightIsNamed(t *testing.T) {
	s := night(t)
	clock := func(minute int) time.Time {
		return time.Date(2026, 3, 14, 22, minute, 0, 0, time.UTC)
	}
	incidents := []struct {
		lines      []string
		sign, over int // minutes since 22:00; between over and 15 minutes later they may be listed
	}{
		{[]string{"D21 charlie-mail", "D21 charlie-mail,charlie-render"}, 137, 170},
		{[]string{"D20 render"}, 140, 161},                                     // the sweepers hung
		{[]string{"D46 render"}, 161, 161}, {[]string{"D46 render"}, 186, 196}, // the late sweep; bravo froze
		{[]string{"D41 mail"}, 201, 230}, {[]string{"D22 mail"}, 230, 250}, // smtp is down; ada pauses
		{[]string{"D45 mail"}, 239, 250},                                          // until ada retries them
		{[]string{"D21 alpha-render", "D21 alpha-render,bravo-render"}, 271, 280}, // the poison job
		{[]string{"D46 render"}, 271, 282},
	}
	w := &watch{Store: s}
	step := ledgertest.Size(2, 1, 1)
	for minute := 1; minute < 360; minute += step {
		found := w.at(t, clock(minute))
		for _, p := range found {
			if !slices.ContainsFunc(incidents, func(i struct {
				lines      []string
				sign, over int
			}) bool {
				return slices.Contains(i.lines, lineOf(p)) && minute >= i.sign-5 && minute <= i.over+15
			}) {
				t.Errorf("%s: %s", clock(minute).Format("15:04"), lineOf(p))
			}
		}
		for _, i := range incidents {
			if minute > i.sign && minute < i.over && !slices.ContainsFunc(found, func(p verdict.Problem) bool {
				return slices.Contains(i.lines, lineOf(p))
			}) {
				t.Errorf("%s: %s is missing", clock(minute).Format("15:04"), i.lines)
			}
		}
	}
}
