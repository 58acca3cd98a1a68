//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// burstSteps are the failpoints of a turn that is sent to a server as a whole.
var burstSteps = []string{"burst-planned", "burst-sent", "burst-committed"}

// A worker may be killed just before a burst is sent, after it, and when it has been carried out. Whatever
// the server made of it, each job that was acknowledged succeeds once, and no claim overlaps another.
func TestKillWorkerInBurst(t *testing.T) {
	for _, step := range burstSteps {
		for _, nth := range ledgertest.Sample([]int{1, 2, 5}, 1) {
			t.Run(fmt.Sprintf("%s:%d", step, nth), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.dsn = ledgertest.Postgres(t)
				const jobs = 30
				r.fill(func(p serviceRig) invocation {
					batch := make([]commands.Enqueue, jobs)
					for i := range batch {
						batch[i] = commands.Enqueue{Queue: "mail", Payload: fmt.Append(nil, i)}
					}
					if _, err := p.Enqueue(t.Context(), "cli:test", batch...); err != nil {
						t.Fatal(err)
					}
					return invocation{}
				})
				work := invoke("work", "-q", "mail", "-j", "2", "--drain", "--db", r.dsn, "--worker", "A", "--", "cat")
				if got := r.do(work.dyingAt(fmt.Sprintf("%s:%d", step, nth))); !got.killed {
					t.Fatalf("no burst was killed: %+v", got)
				}
				r.noProcessLeft()
				r.history("")
				r.must(0, invoke("sweep", "--grace", "0s", "--db", r.dsn).ahead(time.Hour))
				r.must(0, invoke("work", "-q", "mail", "-j", "2", "--drain", "--db", r.dsn, "--worker", "B", "--",
					"cat").ahead(2*time.Hour))
				ends := make(map[event.JobID]int)
				for _, e := range r.history("") {
					if e.Kind() == event.KindSucceeded {
						ends[e.Job]++
					}
				}
				for id, n := range ends {
					if n != 1 {
						t.Errorf("job %s succeeded %d times", id, n)
					}
				}
				if len(ends) != jobs {
					t.Errorf("%d of %d jobs succeeded", len(ends), jobs)
				}
				got := r.must(0, invoke("list", "--json", "--limit", "100", "--db", r.dsn).ahead(3*time.Hour))
				if n := strings.Count(got, `"state":"succeeded"`); n != jobs {
					t.Errorf("%d jobs are succeeded:\n%s", n, got)
				}
			})
		}
	}
}
