//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// TestUniqueKeyUnderKills lets several producers enqueue under one key that is unique until its job has
// ended, while workers finish the jobs. Producers and workers are killed, and the jobs of dead workers
// cancelled. By the events no two jobs that have not ended ever have the key, and every job that was
// acknowledged is there.
func TestUniqueKeyUnderKills(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(0, invoke("init"))
	producers, rounds := ledgertest.Size(2, 3, 6), ledgertest.Size(6, 12, 60)
	var mu sync.Mutex
	acknowledged, kills, conflicts := make(map[string]bool), 0, 0
	produce := func(name, round int) {
		i := invoke("enqueue", "-q", "mail", "--key", "k", "--unique-while", "unfinished", "--on-duplicate",
			[]string{"ignore", "replace"}[round%2], fmt.Sprint(name, "/", round))
		if round%3 == 0 {
			steps := []string{"begun", "list", "commit", "committed", "answer"}
			i = i.dyingAt(steps[rand.IntN(len(steps))]) // #nosec G404 -- a test
		}
		got := r.do(i)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case got.killed:
			kills++
		case got.code == cli.ExitConflict: // the job is claimed, and takes no other payload
			conflicts++
		case got.code != 0:
			t.Errorf("%s: exit code %d: %s", i, got.code, got.stderr)
		default:
			acknowledged[strings.TrimSpace(got.stdout)] = true
		}
	}
	work := func(name string) invocation {
		return invoke("work", "-q", "mail", "--worker", name, "--lease", "3s", "--drain", "--", "true")
	}
	var all sync.WaitGroup
	ended := make(chan struct{})
	for name := range producers {
		all.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-ended:
					return
				default:
					produce(name, round)
				}
			}
		})
	}
	for round := range rounds {
		i := work("mortal")
		if round%2 == 0 {
			i = i.dyingAt([]string{"child-runs", "child-ended", "task-ends"}[round/2%3])
		}
		if r.do(i).killed { // its job has the key until its lease is over, or an operator ends it
			r.do(invoke("cancel", "--key", "k", "-q", "mail"))
		}
	}
	close(ended)
	all.Wait()
	r.must(0, invoke("sweep", "--grace", "0s").ahead(time.Hour))
	r.must(0, work("last").ahead(2*time.Hour))
	open := make(map[event.JobID]bool)
	most := 0
	for _, e := range r.history(db) {
		switch {
		case e.Kind() == event.KindEnqueued, e.Kind() == event.KindRetried:
			open[e.Job] = true
		case e.To.Final():
			delete(open, e.Job)
		}
		most = max(most, len(open))
		delete(acknowledged, string(e.Job))
	}
	if most != 1 || len(open) != 0 || len(acknowledged) != 0 {
		t.Errorf("up to %d jobs had the key at once, %d have not ended; acknowledged and not there: %v", most,
			len(open), acknowledged)
	}
	jobs := r.count(event.KindEnqueued)
	if jobs < 2 || kills == 0 {
		t.Errorf("%d jobs, %d kills", jobs, kills)
	}
	t.Logf("%d jobs, %d kills, %d conflicts, %d replaced, %d reclaimed", jobs, kills, conflicts,
		r.count(event.KindReplaced), r.count(event.KindReclaimed))
	r.must(0, invoke("verify"))
}
