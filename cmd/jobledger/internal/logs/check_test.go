package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"jobledger/commands"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// ended returns a ledger with n jobs whose commands wrote to stdout, and the folder with their output.
func ended(t *testing.T, n int) (s *commands.Service, folder string, jobs []projection.Job) {
	t.Helper()
	s, folder = &commands.Service{Store: ledgertest.Open(t)}, t.TempDir()
	if _, err := s.Enqueue(t.Context(), "cli:test", slices.Repeat([]commands.Enqueue{{Queue: "mail"}},
		n)...); err != nil {
		t.Fatal(err)
	}
	for len(jobs) < n {
		claimed, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
			Limit:  min(100, n-len(jobs)),
			Worker: event.Worker{Name: "w1", Boot: "01KDY9FY88BT0000000000W100", Host: "h", PID: 1}})
		if err != nil || len(claimed) == 0 {
			t.Fatal(len(claimed), err)
		}
		var ops []commands.Op
		for _, j := range claimed {
			text := textOf(j.ID)
			ops = append(ops, commands.Op{Job: j, Command: commands.Succeed{Token: j.Token,
				Output: event.Output{StdoutSHA256: ledger.Digest(j.Salt, text), StdoutBytes: int64(len(text))}}})
			write(t, attemptlog.File(folder, j.ID, 1, false), text)
		}
		if _, err := s.ApplyBatch(t.Context(), "worker:w1", ops); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, claimed...)
	}
	return s, folder, jobs
}

func textOf(job event.JobID) []byte { return fmt.Appendf(nil, "this is %s\n", job) }

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCheckReadsEveryPage(t *testing.T) {
	const n = 2*page + 1
	s, folder, jobs := ended(t, n)
	for _, i := range []int{0, page, n - 1} {
		write(t, attemptlog.File(folder, jobs[i].ID, 1, false), textOf(jobs[1].ID))
	}
	if err := os.Remove(attemptlog.File(folder, jobs[page+1].ID, 1, false)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), "cli:test", jobs[2].ID, commands.Erase{Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	var tail int64
	var recent Report
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		if tail, err = tx.Tail(t.Context()); err == nil {
			recent, err = Recent(t.Context(), tx, folder, 50, 1000, 1<<20)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if recent.Counts != (Counts{Checked: 50, Differing: 1}) {
		t.Errorf("of the latest 50: %+v", recent)
	}
	got, err := Check(t.Context(), s.Store, folder, 0, tail)
	if err != nil || got.Counts != (Counts{Checked: n - 2, Differing: 3, Missing: 1, Erased: 1}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for i, f := range got.Findings {
		if want := jobs[[]int{0, page, n - 1}[i]].ID; f.Code != FindLog || f.Job != want || f.Field != "stdout" {
			t.Errorf("finding %d is %+v, want one of %s", i, f, want)
		}
	}
	// after the events claimed, succeeded and erased
	since, err := Check(t.Context(), s.Store, folder, tail-3, tail)
	if err != nil || since.Counts != (Counts{Checked: 1, Differing: 1}) {
		t.Errorf("after %d: %+v, %v", tail-3, since, err)
	}
	var found []audit.Finding
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		found = v.Findings
		return err
	})
	if err != nil || len(found) > 0 {
		t.Errorf("verify: %+v, %v", found, err)
	}
}

// TestRecentIsBounded: the check ends before it reads more bytes than allowed.
func TestRecentIsBounded(t *testing.T) {
	s, folder, jobs := ended(t, 10)
	size := int64(len(textOf(jobs[0].ID)))
	for _, tt := range []struct {
		limit        int
		events, size int64
		want         int64
	}{{100, 1000, 1 << 20, 10}, {4, 1000, 1 << 20, 4}, {100, 3, 1 << 20, 3}, {100, 1000, 5*size + 1, 5}} {
		err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			got, err := Recent(t.Context(), tx, folder, tt.limit, tt.events, tt.size)
			if err == nil && got.Counts != (Counts{Checked: tt.want}) {
				t.Errorf("%+v: got %+v", tt, got)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
