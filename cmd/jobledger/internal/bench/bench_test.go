package bench

import (
	"errors"
	"fmt"
	"os"
	"testing"

	_ "jobledger/ledger/ledgertest" // for its flags, which every package's tests must accept
)

// TestMain lets this test binary run as a further process of a benchmark.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Word {
		if err := Process(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestRunEachPhase(t *testing.T) {
	for _, phase := range Phases() {
		t.Run(phase.Name, func(t *testing.T) {
			dir := t.TempDir()
			r, err := Run(t.Context(), Options{Phase: phase.Name, Workers: 2, Jobs: 10, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if r.Jobs != 10 || r.Seconds <= 0 || r.BytesPerJob == nil || r.DiskSyncs <= 0 {
				t.Errorf("got %+v", r)
			}
			if r.Executions != nil && (*r.Executions != 10 || *r.Left != 0) {
				t.Errorf("%d executions, %d left", *r.Executions, *r.Left)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("the folder has %v, %v", entries, err)
			}
		})
	}
}

func TestRunWithTwoProcesses(t *testing.T) {
	r, err := Run(t.Context(), Options{Phase: "drain", Workers: 2, Procs: 2, Jobs: 40, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if r.Procs != 2 || *r.Executions != 40 || *r.Left != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestRunRefusesOptions(t *testing.T) {
	for _, o := range []Options{
		{},
		{Phase: "drian"},
		{Phase: "drain", Sync: "off"},
		{Phase: "drain", Payload: 4},
	} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestResultReportsJobsThatRanTwiceOrAreLeft(t *testing.T) {
	for name, test := range map[string]struct {
		tally tally
		left  int64
		wrong bool
	}{
		"each once":      {tally{Runs: []int32{1, 1, 1}}, 0, false},
		"twice":          {tally{Runs: []int32{1, 2, 1}}, 0, true},
		"twice, missing": {tally{Runs: []int32{1, 2, 0}}, 0, true},
		"left":           {tally{Runs: []int32{1, 1, 1}}, 1, true},
		"never enqueued": {tally{Runs: []int32{1, 1, 0}, Stray: 1}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := Result{Jobs: 3}
			if err := r.setExecutions(test.tally, test.left); errors.Is(err, ErrWrong) != test.wrong {
				t.Errorf("got %v, want an error: %t", err, test.wrong)
			}
		})
	}
}
