package projection_test

import (
	"slices"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/internal/historytest"
)

// TestListSelectsByErrorExitHostAndEnd compares List and ListAsOf, at every pos of a history, with a
// selection among all jobs by their events.
func TestListSelectsByErrorExitHostAndEnd(t *testing.T) {
	s := ledgertest.Open(t)
	historytest.Record(t, s, historytest.Read(t, "v1.jsonl"))
	ctx := t.Context()
	selected := 0
	err := s.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		if err != nil {
			return err
		}
		exits := make(map[int64]*int)   // of the last failure of a job
		hosts := make(map[int64]string) // of the last claim of a job
		for e, err := range tx.Events(ctx, ledger.Filter{}) {
			if err != nil {
				return err
			}
			n, err := tx.Number(ctx, e.Job)
			if err != nil {
				return err
			}
			switch b := e.Body.(type) {
			case *event.Claimed, *event.TakenOver:
				hosts[n] = e.Worker.Host
			case *event.Failed:
				exits[n] = b.ExitCode
			case *event.Reclaimed:
				exits[n] = nil
			}
			m, err := projection.AtPos(ctx, tx, e.Pos)
			if err != nil {
				return err
			}
			all, err := projection.ListAsOf(ctx, tx, projection.Filter{}, m)
			if err != nil {
				return err
			}
			for _, f := range filtersOf(all, exits, hosts, m) {
				var want, got []int64
				for _, j := range all {
					if selects(f, j.Job, exits[j.N], hosts[j.N]) {
						want = append(want, j.N)
					}
				}
				found, err := projection.ListAsOf(ctx, tx, f, m)
				if err != nil {
					return err
				}
				for _, j := range found {
					got = append(got, j.N)
				}
				if !slices.Equal(got, want) {
					t.Errorf("as of pos %d, %+v: got %v, want %v", e.Pos, f, got, want)
				}
				selected += len(got)
				if e.Pos != tail {
					continue
				}
				got = nil
				now, err := projection.List(ctx, tx, f)
				if err != nil {
					return err
				}
				for _, j := range now {
					got = append(got, j.N)
				}
				if !slices.Equal(got, want) {
					t.Errorf("now, %+v: got %v, want %v", f, got, want)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if selected < 100 {
		t.Errorf("only %d jobs were selected", selected)
	}
}

// filtersOf returns a filter for each error, host, exit code and end among jobs, and some more.
func filtersOf(jobs []projection.Then, exits map[int64]*int, hosts map[int64]string,
	m projection.Moment) []projection.Filter {
	none := 250
	filters := []projection.Filter{{Exit: &none}, {Host: "nowhere"}, {FinishedTo: m.At},
		{Until: max(m.Pos/2, 1)}, {After: m.Pos / 2}}
	for _, j := range jobs {
		if j.ErrorCode != "" {
			filters = append(filters, projection.Filter{Error: j.ErrorCode})
		}
		if host := hosts[j.N]; host != "" {
			filters = append(filters, projection.Filter{Host: host, After: j.N - 1})
		}
		if exits[j.N] != nil {
			filters = append(filters, projection.Filter{Exit: exits[j.N]})
		}
		if !j.FinishedAt.IsZero() {
			filters = append(filters, projection.Filter{FinishedFrom: j.FinishedAt},
				projection.Filter{FinishedTo: j.FinishedAt.Add(-time.Microsecond)})
		}
	}
	return filters
}

func selects(f projection.Filter, j projection.Job, exit *int, host string) bool {
	ended := !j.FinishedAt.IsZero()
	return (f.Error == "" || j.ErrorCode == f.Error) && (f.Host == "" || host == f.Host) &&
		(f.Exit == nil || j.ErrorCode != "" && exit != nil && *exit == *f.Exit) &&
		(f.FinishedFrom.IsZero() || ended && !j.FinishedAt.Before(f.FinishedFrom)) &&
		(f.FinishedTo.IsZero() || ended && !j.FinishedAt.After(f.FinishedTo)) &&
		j.N > f.After && (f.Until == 0 || j.N <= f.Until)
}
