//go:build unix

package main

import (
	"context"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/projection"
)

// child enqueues a job that waits for the success of another.
func (p serviceRig) child(parent projection.Job) projection.Job {
	p.Helper()
	jobs, err := p.Enqueue(context.Background(), "cli:test",
		commands.Enqueue{Queue: "mail", After: []commands.Dependency{{Job: parent.ID}}})
	if err != nil {
		p.Fatal(err)
	}
	return jobs[0].Job
}

// failedWithChain returns a job that has failed for good, after a chain of two had been made to wait for it.
func (p serviceRig) failedWithChain() projection.Job {
	p.Helper()
	j := p.held("x")
	p.child(p.child(j))
	p.end(j, commands.Fail{Token: j.Token, Code: "oom", NoRetry: true})
	return j
}

// The fan-out of an end: how many children it unblocks itself, and how many a sweep finds afterwards.
const fanOut, leftOver = 256, 40

// waitingTrials are trials of jobs that wait for others, and of keys that are unique until a job has
// ended: what follows from a command is committed with it, or not at all.
var waitingTrials = []trial{
	{name: "replace", adds: "replaced", steps: writeSteps, prepare: func(p serviceRig) invocation {
		p.must(0, invoke("enqueue", "-q", "mail", "--key", "k", "--unique-while", "unfinished", "first"))
		return invoke("enqueue", "-q", "mail", "--key", "k", "--unique-while", "unfinished",
			"--on-duplicate", "replace", "second")
	}, after: func(r rig) {
		said := r.must(0, invoke("show", "--key", "k", "-q", "mail", "--json"))
		if !strings.Contains(said, "second") {
			r.Errorf("the job has another payload: %s", said)
		}
	}},
	{name: "key again", adds: "enqueued", steps: mainSteps, prepare: func(p serviceRig) invocation {
		unique := commands.Enqueue{Queue: "mail", Key: "k", UniqueWhile: "unfinished"}
		if _, err := p.Enqueue(context.Background(), "cli:test", unique); err != nil {
			p.Fatal(err)
		}
		j := p.claimed()
		p.end(j, commands.Succeed{Token: j.Token})
		return invoke("enqueue", "-q", "mail", "--key", "k", "--unique-while", "unfinished", "x")
	}},
	{name: "enqueue after", adds: "enqueued", steps: mainSteps, prepare: func(p serviceRig) invocation {
		return invoke("enqueue", "-q", "mail", "--key", "k", "--after", string(p.job("x").ID), "child")
	}},
	{name: "enqueue before", adds: "enqueued", steps: mainSteps, prepare: func(p serviceRig) invocation {
		return invoke("enqueue", "-q", "mail", "--key", "k", "--before", string(p.child(p.job("x")).ID), "parent")
	}},
	{name: "succeed parent", adds: "succeeded unblocked unblocked", steps: writeSteps,
		prepare: func(p serviceRig) invocation {
			j := p.held("x")
			p.child(j)
			p.child(j)
			return invoke("succeed", string(j.ID), "--token", j.Token, "--result", "done")
		}},
	{name: "fail parent", adds: "failed cancelled cancelled", steps: writeSteps,
		prepare: func(p serviceRig) invocation {
			j := p.held("x")
			p.child(p.child(j))
			return invoke("fail", string(j.ID), "--token", j.Token, "--code", "oom", "--no-retry")
		}},
	{name: "retry parent", adds: "retried retried retried", then: cli.ExitConflict, steps: writeSteps,
		prepare: func(p serviceRig) invocation {
			return invoke("retry", string(p.failedWithChain().ID), "--reason", "repaired")
		}},
	{name: "unblock", adds: "unblocked", then: cli.ExitConflict, steps: mainSteps,
		prepare: func(p serviceRig) invocation {
			held := commands.Enqueue{Queue: "mail", Hold: true}
			jobs, err := p.Enqueue(context.Background(), "cli:test", held)
			if err != nil {
				p.Fatal(err)
			}
			return invoke("unblock", string(jobs[0].ID))
		}},
	{name: "sweep fan-out", adds: strings.TrimSpace(strings.Repeat("unblocked ", leftOver)), steps: mainSteps,
		prepare: func(p serviceRig) invocation {
			j := p.held("x")
			children := make([]commands.Enqueue, fanOut+leftOver)
			for i := range children {
				children[i] = commands.Enqueue{Queue: "mail", After: []commands.Dependency{{Job: j.ID}}}
			}
			if _, err := p.Enqueue(context.Background(), "cli:test", children...); err != nil {
				p.Fatal(err)
			}
			p.end(j, commands.Succeed{Token: j.Token})
			return invoke("sweep")
		}},
}
