//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// A removal that was killed has lost nothing, at whatever step: each event is in the ledger or in a file that
// the ledger names. The next one goes on, and ends as one that was not killed.
func TestKilledWhileRemoving(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	i := r.fill(func(p serviceRig) invocation {
		jobs := make([]commands.Enqueue, 210) // more than a step removes
		for n := range jobs {
			jobs[n] = commands.Enqueue{Queue: "mail", Key: fmt.Sprint("key ", n), Payload: []byte("x")}
		}
		done, err := p.Enqueue(context.Background(), "cli:test", jobs...)
		if err != nil {
			p.Fatal(err)
		}
		var all sync.WaitGroup
		for _, j := range done {
			all.Go(func() {
				if _, err := p.Apply(context.Background(), "cli:test", j.ID, commands.Cancel{}); err != nil {
					p.Error(err)
				}
			})
		}
		all.Wait()
		if _, err = p.Enqueue(context.Background(), "cli:test",
			slices.Repeat([]commands.Enqueue{{Queue: "mail"}}, 100)...); err != nil {
			p.Fatal(err)
		}
		return invoke("archive", "--older-than", "0s")
	})
	before := r.must(cli.ExitOK, invoke("events", "--json"))
	steps := []string{"archive-recorded", "remove-compared", "removed", "shrunk"}
	if !ledgertest.Long() {
		steps = steps[1:3]
	} else {
		steps = append(steps, "list", "commit", "committed", "segment-written", "segment-checked", "segment-named")
	}
	deaths := 0
	for _, step := range steps {
		deaths += r.dieAtEach(step, i, cli.ExitOK, func(r rig, _ exit) {
			lossless := func() {
				r.Helper()
				if _, findings := r.inspect(db); len(findings) > 0 {
					r.Errorf("verify: %+v", findings)
				}
				all := r.must(cli.ExitOK, invoke("events", "--json", "--limit",
					fmt.Sprint(1+strings.Count(before, "\n"))))
				if all != before {
					r.Errorf("the events are not what they were: %d bytes, and %d", len(all), len(before))
				}
			}
			lossless()
			if got := r.do(i); got.code != cli.ExitOK && got.code != cli.ExitNothing {
				r.Errorf("sent again: exit code %d: %s", got.code, got.stderr)
			}
			lossless()
			var list []json.RawMessage
			for line := range strings.Lines(r.must(cli.ExitOK, invoke("list", "--json", "--limit", "1000"))) {
				list = append(list, json.RawMessage(line))
			}
			if len(list) != 100 {
				r.Errorf("there are %d jobs left, want 100", len(list))
			}
			r.must(cli.ExitConflict, invoke("enqueue", "-q", "mail", "--key", "key 7", "other"))
			files := r.must(cli.ExitOK, invoke("archive", "check", "--json"))
			if strings.Contains(files, `"damaged"`) {
				r.Errorf("the archive has %s", files)
			}
		})
	}
	t.Logf("%d deaths", deaths)
}

// One that was stopped while another archived and removed a part of its range has lost a race, and no event:
// it ends as in conflict, at whatever step it was.
func TestArchiveOvertakenWhileStopped(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"archive-sealed", "segment-written", "segment-checked", "segment-named"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.must(cli.ExitOK, invoke("init"))
			const jobs = 300
			r.ledger(db, func(store *ledger.Store) {
				s := &commands.Service{Store: store}
				for range jobs / 100 { // enqueued and cancelled soon after, so that whole jobs are in the first file
					some := slices.Repeat([]commands.Enqueue{{Queue: "mail"}}, 100)
					done, err := s.Enqueue(t.Context(), "cli:test", some...)
					if err != nil {
						t.Fatal(err)
					}
					ops := make([]commands.Op, len(done))
					for i, j := range done {
						ops[i] = commands.Op{Job: j.Job, Command: commands.Cancel{}}
					}
					if _, err := s.ApplyBatch(t.Context(), "cli:test", ops); err != nil {
						t.Fatal(err)
					}
				}
			})
			late := r.start(r.cmd(invoke("archive", "--older-than", "0s").dyingAt(step + "=stop")))
			r.wantStopped(late)
			r.ledger(db, func(store *ledger.Store) {
				s, dir := &commands.Service{Store: store}, store.Path()+archive.Suffix
				o := archive.Options{Dir: dir, Actor: "cli:test"}
				if _, err := archive.Close(t.Context(), s, 256, o); err != nil {
					t.Fatal(err)
				}
				m := archive.Removal{Service: s, Dir: dir, Actor: "cli:test"}
				if gone, err := m.All(t.Context(), nil); err != nil || gone.Jobs == 0 {
					t.Fatalf("removed %+v, %v", gone, err)
				}
			})
			late.signal(syscall.SIGCONT)
			late.wantExit(cli.ExitConflict)
			r.must(cli.ExitOK, invoke("archive", "--older-than", "0s"))
			r.must(cli.ExitOK, invoke("archive", "check"))
			r.must(cli.ExitOK, invoke("verify"))
			lines := r.must(cli.ExitOK, invoke("events", "--json", "--limit", "10000", "--kind", "enqueued"))
			if got := 1 + strings.Count(lines, "\n"); got != jobs {
				t.Errorf("there are %d of %d jobs", got, jobs)
			}
		})
	}
}
