package simtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"jobledger/commands/commandstest"
	"jobledger/ledger/ledgertest"
)

// The simulation runs whole histories of several processes on one ledger: workers, sweepers, a producer and
// an operator, each with its own Store, its own boot and its own wall clock. Service, Sweeper, Store and
// SQLite are real. Simulated are the time, which passes only while all goroutines wait, and the faults: lost
// requests and answers, commits of unknown outcome, processes that freeze or die, clocks that jump. Only one
// call is in progress at a time, and every random choice comes from the seed, so a seed gives the same
// history for ever.
//
// In the first part anything may fail. Then the faults end, and every job that can end must end.
var (
	simSeed  = flag.Uint64("seed", 0, "run this one seed of the simulation and print what happens")
	simSeeds = flag.Int("seeds", 0, "seeds of the simulation; default 20, with -short 20, with -long 120")
)

func simulations() int {
	if *simSeeds > 0 {
		return *simSeeds
	}
	return ledgertest.Size(20, 15, 50)
}

func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		r := simulate(t, *simSeed, "")
		for _, line := range r.trace {
			fmt.Println(line)
		}
		r.report(t)
		return
	}
	ledgertest.EmptyFile(t)
	var lock sync.Mutex
	total, lanes := make(map[string]int), uint64(runtime.GOMAXPROCS(0))
	t.Run("seeds", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				for seed := lane + 1; seed <= uint64(simulations()) && !t.Failed(); seed += lanes {
					r := simulate(t, seed, "")
					r.report(t)
					lock.Lock()
					for what, n := range r.counts {
						total[what] += n
					}
					lock.Unlock()
				}
			})
		}
	})
	t.Log(total)
	if total["blocks"] == 0 && !t.Failed() {
		t.Error("no sweeper added a block")
	}
}

// A seed that is run twice gives the same ledger, to the last byte of its events.
func TestSimulationIsDeterministic(t *testing.T) {
	for seed := range uint64(min(simulations()/10, 5)) {
		a, b := simulate(t, seed+1, ""), simulate(t, seed+1, "")
		if a.oracle.digest != b.oracle.digest || len(a.trace) != len(b.trace) {
			t.Errorf("seed %d: %d and %d things happened, and the events are not the same", seed+1, len(a.trace),
				len(b.trace))
		}
	}
}

// TestSimulationFindsSabotage breaks one rule after another, in the actors or from outside the program. The
// oracle must detect each, with the right finding.
func TestSimulationFindsSabotage(t *testing.T) {
	for _, broken := range ledgertest.Sample(sabotages, 5) {
		t.Run(broken.name, func(t *testing.T) {
			for seed := range uint64(200) {
				r := simulate(t, seed+1, broken.name)
				if r.wrong == "" || r.wrong == "verify" {
					continue // this seed did not reach the fault, except that a table differs from the events
				}
				if !slices.Contains(broken.finds, r.wrong) {
					t.Errorf("seed %d: found as %q, want %q: %s", r.seed, r.wrong, broken.finds, r.detail)
				}
				t.Logf("seed %d: %s: %s", r.seed, r.wrong, r.detail)
				return
			}
			t.Errorf("not found in 200 seeds")
		})
	}
}

// report fails the test if something was wrong, with the last calls and how to reproduce them.
func (s *sim) report(t *testing.T) {
	t.Helper()
	if s.wrong == "" {
		return
	}
	for _, line := range s.trace[max(0, len(s.trace)-40):] {
		t.Log(line)
	}
	t.Errorf(
		"seed %d: %s: %s\nagain, with everything that happens: go test ./commands -run 'TestSimulation$' -seed %d",
		s.seed, s.wrong, s.detail, s.seed)
}

// simulate runs one seed, with one rule broken if broken names it.
func simulate(t *testing.T, seed uint64, broken string) *sim {
	t.Helper()
	s := &sim{seed: seed, broken: broken, rng: rand.New(rand.NewPCG(seed, 0)), counts: make(map[string]int)}
	s.path = filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", seed))
	if err := os.WriteFile(s.path, ledgertest.EmptyFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s.commits = commandstest.ControlCommits(s.path)
	synctest.Test(t, func(t *testing.T) {
		s.t = t
		s.run()
	})
	os.RemoveAll(s.archiveDir())
	for _, suffix := range []string{"", "-wal", "-shm"} {
		os.Remove(s.path + suffix)
	}
	return s
}
