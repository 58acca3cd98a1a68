//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// trial is a command that is killed at each of its failpoints. Afterwards the ledger contains all of its
// events or none. Sending the command again adds what is missing, once.
type trial struct {
	name    string
	prepare func(p serviceRig) invocation // fills the ledger
	code    int                           // its exit code
	adds    string                        // the events that it adds, in order
	parts   []int                         // how many of these may be stored without the rest
	twice   string                        // what it adds when it is repeated after it was committed
	then    int                           // its exit code when it is repeated
	steps   []string
	damaged bool        // the tables differ from the fold until it is committed
	after   func(r rig) // checks the site after the repetition
}

// serviceRig is a rig with a service on its ledger, to fill it.
type serviceRig struct {
	rig
	*commands.Service
}

func (p serviceRig) job(payload string) projection.Job {
	p.Helper()
	jobs, err := p.Enqueue(context.Background(), "cli:test",
		commands.Enqueue{Queue: "mail", Payload: []byte(payload)})
	if err != nil {
		p.Fatal(err)
	}
	return jobs[0].Job
}

// held returns a job of a worker that is dead.
func (p serviceRig) held(payload string) projection.Job {
	p.Helper()
	p.job(payload)
	return p.claimed()
}

// claimed returns the next job, which a worker that is dead has claimed.
func (p serviceRig) claimed() projection.Job {
	p.Helper()
	jobs, err := p.Claim(context.Background(), commands.ClaimRequest{Queues: []string{"mail"},
		Worker: event.Worker{Name: "dead", Boot: "B"}})
	if err != nil || len(jobs) != 1 {
		p.Fatalf("claim: %v, %v", jobs, err)
	}
	return jobs[0]
}

func (p serviceRig) end(j projection.Job, c commands.Command) {
	p.Helper()
	if _, err := p.Apply(context.Background(), "worker:dead", j.ID, c); err != nil {
		p.Fatal(err)
	}
}

// The failpoints of every command that writes: all of them, or the most important ones of commands that
// differ little.
var (
	writeSteps = []string{"begin", "begun", "list", "commit", "committed", "sync", "answer", "statement"}
	mainSteps  = []string{"list", "commit", "committed"}
)

const secret = "the secret that must not be found"

var trials = []trial{
	{name: "enqueue", adds: "enqueued", steps: writeSteps, prepare: func(p serviceRig) invocation {
		return invoke("enqueue", "-q", "mail", "--key", "k", "payload")
	}},
	{name: "claim", adds: "claimed", then: cli.ExitNothing, steps: mainSteps,
		prepare: func(p serviceRig) invocation {
			p.job("x")
			return invoke("claim", "-q", "mail")
		}},
	{name: "heartbeat", adds: "heartbeat", twice: "heartbeat", steps: mainSteps,
		prepare: func(p serviceRig) invocation {
			j := p.held("x")
			return invoke("heartbeat", string(j.ID), "--token", j.Token)
		}},
	{name: "succeed", adds: "succeeded", steps: mainSteps, prepare: func(p serviceRig) invocation {
		j := p.held("x")
		return invoke("succeed", string(j.ID), "--token", j.Token, "--result", "done")
	}},
	{name: "fail", adds: "failed", steps: mainSteps, prepare: func(p serviceRig) invocation {
		j := p.held("x")
		return invoke("fail", string(j.ID), "--token", j.Token, "--code", "oom")
	}},
	{name: "release", adds: "released", steps: mainSteps, prepare: func(p serviceRig) invocation {
		j := p.held("x")
		return invoke("release", string(j.ID), "--token", j.Token, "--delay", "1h")
	}},
	{name: "refused", code: cli.ExitLeaseLost, adds: "refused", then: cli.ExitLeaseLost, steps: mainSteps,
		prepare: func(p serviceRig) invocation {
			j := p.held("x")
			return invoke("succeed", string(j.ID), "--token", "01KDY9FY88TH00000000000009", "--result", "stale")
		}},
	{name: "cancel", adds: "cancelled", steps: mainSteps, prepare: func(p serviceRig) invocation {
		return invoke("cancel", string(p.job("x").ID))
	}},
	{name: "pause", adds: "queue_paused", steps: mainSteps, prepare: func(p serviceRig) invocation {
		return invoke("pause", "-q", "mail")
	}},
	{name: "sweep", adds: "reclaimed reclaimed reclaimed", parts: []int{2},
		steps: append([]string{"looked", "reclaimed"}, writeSteps...), prepare: func(p serviceRig) invocation {
			for range 3 {
				p.held("x")
			}
			return invoke("sweep", "--grace", "0s", "--batch", "2").ahead(time.Hour)
		}},
	{name: "erase", adds: "erased", steps: append([]string{"checkpoint", "checkpointed"}, writeSteps...),
		prepare: func(p serviceRig) invocation {
			j := p.held(secret)
			p.end(j, commands.Succeed{Token: j.Token, Result: []byte(secret)})
			logs := p.path(filepath.Join(db+".logs", string(j.ID)))
			if err := os.MkdirAll(logs, 0o700); err != nil {
				p.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(logs, "1.out"), []byte(secret), 0o600); err != nil {
				p.Fatal(err)
			}
			return invoke("erase", string(j.ID), "--reason", "asked for")
		}, after: func(r rig) {
			if where := r.find(secret); len(where) > 0 {
				r.Errorf("what was erased is in %q", where)
			}
		}},
	{name: "rebuild", adds: "rebuilt", twice: "rebuilt", damaged: true,
		steps: append([]string{"rebuilt"}, writeSteps...), prepare: func(p serviceRig) invocation {
			for range 4 {
				p.job("x")
			}
			err := p.Store.Write(context.Background(), func(tx *ledger.Tx) error {
				_, err := tx.Exec(`UPDATE jobs SET priority = 7 WHERE n < 3`)
				if err == nil {
					_, err = tx.Exec(`DELETE FROM jobs WHERE n = 3`)
				}
				return err
			})
			if err != nil {
				p.Fatal(err)
			}
			return invoke("rebuild")
		}},
	{name: "seal init", adds: "sealing", then: cli.ExitConflict, steps: []string{"commit"},
		prepare: func(p serviceRig) invocation {
			p.job("x")
			return invoke("seal", "--init")
		}},
	{name: "seal", steps: []string{"hashed", "block", "rooted", "seal"},
		prepare: func(p serviceRig) invocation {
			if _, err := p.StartSealing(context.Background(), "cli:test", "", "", ""); err != nil {
				p.Fatal(err)
			}
			jobs := make([]commands.Enqueue, 700)
			for i := range jobs {
				jobs[i].Queue = "mail"
			}
			if _, err := p.Enqueue(context.Background(), "cli:test", jobs...); err != nil {
				p.Fatal(err)
			}
			return invoke("seal")
		}},
	{name: "checkpoint", steps: []string{"hashed", "sealed", "handed-out"},
		prepare: func(p serviceRig) invocation {
			if _, err := p.StartSealing(context.Background(), "cli:test", "", "", ""); err != nil {
				p.Fatal(err)
			}
			jobs := slices.Repeat([]commands.Enqueue{{Queue: "mail"}}, 300)
			if _, err := p.Enqueue(context.Background(), "cli:test", jobs...); err != nil {
				p.Fatal(err)
			}
			return invoke("checkpoint", "--to", "kept")
		}, after: func(r rig) { // it was sent again: the file has it once, and it is recorded
			r.must(cli.ExitNothing, invoke("checkpoint", "--to", "kept"))
			said := r.must(cli.ExitOK, invoke("verify", "--against", "kept"))
			if !strings.Contains(said, "checkpoint: it holds, of 301 events") {
				r.Errorf("verify says %s", said)
			}
		}},
	{name: "archive", adds: "archived", then: cli.ExitNothing,
		steps: []string{"sealed", "archive-sealed", "segment-written", "segment-checked", "segment-named",
			"archive-recorded", "committed"},
		prepare: func(p serviceRig) invocation {
			jobs := make([]commands.Enqueue, 300)
			for i := range jobs {
				jobs[i] = commands.Enqueue{Queue: "mail"}
			}
			if _, err := p.Enqueue(context.Background(), "cli:test", jobs...); err != nil {
				p.Fatal(err)
			}
			return invoke("archive", "close", "--older-than", "0s")
		}, after: func(r rig) {
			files := r.must(cli.ExitOK, invoke("archive", "check", "--json"))
			if strings.Count(files, `"state":"present"`) != 1 {
				r.Errorf("the archive has %s", files)
			}
			names, err := filepath.Glob(r.path(db + ".archive/*"))
			if len(names) != 3 || err != nil {
				r.Errorf("the folder has %v, want a file, its index and its summary: %v", names, err)
			}
		}},
	{name: "import", adds: "enqueued claimed succeeded imported", then: cli.ExitConflict,
		steps: append([]string{"line"}, writeSteps...), prepare: func(p serviceRig) invocation {
			p.Store.Close()
			other := rig{site: site{TB: p.TB, dir: p.TempDir()}, program: p.program}
			other.exportOfOne(p.path("history.jsonl"))
			return invoke("import", "history.jsonl")
		}},
}
