package commands_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"jobledger/commands"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// uniqueJob is a job as the model of keys has it.
type uniqueJob struct {
	job            projection.Job
	key, while     string
	payload, state string
	gone           bool // it has given its key up
	open           bool // it was cancelled while it was claimed, and its command may run
}

// Random commands on jobs with few keys agree with a model, which knows for each job whether it has its key.
func TestUniqueKeysAsTheModelHasThem(t *testing.T) {
	ledgertest.Preset(t, "rapid.checks", ledgertest.Size("100", "30", "100")) // a fifth with -short
	rapid.Check(t, func(r *rapid.T) {
		q := newQueue(t)
		var jobs []*uniqueJob
		holder := func(key string) *uniqueJob {
			for _, j := range jobs {
				if j.key == key && !j.gone {
					return j
				}
			}
			return nil
		}
		pick := func(states ...string) *uniqueJob {
			var found []*uniqueJob
			for _, j := range jobs {
				if slices.Contains(states, j.state) {
					found = append(found, j)
				}
			}
			if len(found) == 0 {
				return nil
			}
			return rapid.SampledFrom(found).Draw(r, "job")
		}
		end := func(j *uniqueJob, state string) { j.state, j.gone = state, j.while != "" }
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			switch rapid.SampledFrom([]string{"enqueue", "enqueue", "claim", "succeed", "fail", "give up", "cancel",
				"retry"}).Draw(r, "step") {
			case "enqueue":
				e := commands.Enqueue{Queue: "mail", Key: rapid.SampledFrom([]string{"a", "b"}).Draw(r, "key"),
					UniqueWhile: rapid.SampledFrom([]string{event.WhileQueued, event.WhileUnfinished,
						""}).Draw(r, "while"),
					Payload: []byte(rapid.SampledFrom([]string{"", "1", "2"}).Draw(r, "payload"))}
				if e.UniqueWhile == "" {
					e.Key = rapid.SampledFrom([]string{"b", "c"}).Draw(r, "key for ever")
				} else {
					e.OnDuplicate = rapid.SampledFrom([]string{"", commands.IgnoreDuplicate,
						commands.ReplaceDuplicate}).Draw(r, "policy")
				}
				h := holder(e.Key)
				same := h != nil && h.payload == string(e.Payload)
				waits := h != nil && h.state == "queued"
				conflict := h != nil && (h.while == "" && e.UniqueWhile != "" || h.while != "" && e.UniqueWhile == "" ||
					h.while == "" && !same || e.OnDuplicate == commands.ReplaceDuplicate && !same && !waits)
				conflict = conflict || h == nil && e.UniqueWhile == event.WhileUnfinished &&
					slices.ContainsFunc(jobs, func(j *uniqueJob) bool {
						return j.open && j.key == e.Key && j.while == event.WhileUnfinished && j.state == "cancelled"
					})
				answers, err := q.Enqueue(t.Context(), "cli:test", e)
				switch {
				case conflict:
					if !errors.Is(err, commands.ErrConflict) {
						r.Fatalf("enqueue %+v over %+v: %v, want a conflict", e, h, err)
					}
				case err != nil:
					r.Fatalf("enqueue %+v over %+v: %v", e, h, err)
				case h == nil:
					if answers[0].Existing {
						r.Fatalf("enqueue %+v: there was a job", e)
					}
					jobs = append(jobs, &uniqueJob{job: answers[0].Job, key: e.Key, while: e.UniqueWhile,
						payload: string(e.Payload), state: "queued"})
				default:
					replaces := e.OnDuplicate == commands.ReplaceDuplicate && !same
					if a := answers[0]; !a.Existing || a.ID != h.job.ID || a.Replaced != replaces {
						r.Fatalf("enqueue %+v over %+v: %+v", e, h, a)
					}
					if replaces {
						h.payload = string(e.Payload)
					}
				}
			case "claim":
				for _, got := range q.claim("w", limit(1)) {
					i := slices.IndexFunc(jobs, func(j *uniqueJob) bool { return j.job.ID == got.ID })
					j := jobs[i]
					if string(got.Payload) != j.payload || got.Key != j.key {
						r.Fatalf("claimed %q with key %q, want %q with %q", got.Payload, got.Key, j.payload, j.key)
					}
					j.job, j.state, j.open = got, "claimed", false
					j.gone = j.gone || j.while == event.WhileQueued
				}
			case "succeed":
				if j := pick("claimed"); j != nil {
					j.job = q.command(j.job, commands.Succeed{Token: j.job.Token})
					end(j, "succeeded")
				}
			case "fail":
				if j := pick("claimed"); j != nil {
					j.job = q.command(j.job, commands.Fail{Token: j.job.Token, RetryIn: new(time.Duration)})
					if j.state = "queued"; j.job.State == event.FailedState {
						end(j, "failed")
					}
				}
			case "give up":
				if j := pick("claimed"); j != nil {
					j.job = q.command(j.job, commands.Fail{Token: j.job.Token, NoRetry: true})
					end(j, "failed")
				}
			case "cancel":
				if j := pick("queued", "claimed"); j != nil {
					token, claimed := j.job.Token, j.state == "claimed"
					j.job = q.command(j.job, commands.Cancel{})
					if j.open = j.open || claimed; claimed && rapid.Bool().Draw(r, "stopped") {
						j.job, j.open = q.command(j.job, commands.ReportStop{Token: token}), false
					}
					end(j, "cancelled")
				}
			case "retry":
				j := pick("succeeded", "failed", "cancelled")
				if j == nil {
					continue
				}
				h := holder(j.key)
				after, err := q.Apply(t.Context(), "cli:test", j.job.ID, commands.Retry{Now: true})
				switch taken := h != nil && h != j; {
				case taken && !errors.Is(err, commands.ErrConflict), !taken && err != nil:
					r.Fatalf("retry of %+v, whose key %+v has: %v", j, h, err)
				case err == nil:
					j.job, j.state, j.gone, j.open = after, "queued", false, false
				}
			}
		}
		wantClean(t, q.Store)
	})
}

// Producers that share no memory never make two jobs of one key at once.
func TestUniqueProducersAtOnceMakeOneJob(t *testing.T) {
	q := newQueue(t)
	const producers = 6
	for round := range ledgertest.Size(3, 4, 40) {
		var ids [producers]event.JobID
		var group sync.WaitGroup
		for i := range producers {
			store, err := ledger.Open(t.Context(), q.Store.DSN())
			if err != nil {
				t.Fatal(err)
			}
			group.Go(func() {
				defer store.Close()
				s := &commands.Service{Store: store}
				answers, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail", Key: "k",
					UniqueWhile: event.WhileUnfinished, OnDuplicate: commands.ReplaceDuplicate, Payload: fmt.Append(nil, i)})
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = answers[0].ID
			})
		}
		group.Wait()
		for _, id := range ids[1:] {
			if id != ids[0] {
				t.Fatalf("round %d: the jobs %v", round, ids)
			}
		}
		q.command(q.fresh(ids[0]), commands.Cancel{})
	}
	wantClean(t, q.Store)
}

// A history in which two jobs have one key at once is found, and not imported.
func TestUniqueKeyOfTwoJobsIsFound(t *testing.T) {
	q := newQueue(t)
	a := q.enqueue(commands.Enqueue{Key: "k", UniqueWhile: event.WhileUnfinished})
	b := q.enqueue(commands.Enqueue{Key: "other", UniqueWhile: event.WhileUnfinished})
	q.command(a, commands.Cancel{})
	q.command(b, commands.Cancel{})
	forged := func(yield func(event.Line, error) bool) {
		for line, err := range q.Store.Lines(t.Context(), ledger.Filter{}, true) {
			if e, ok := line.Event.Body.(*event.Enqueued); ok && err == nil {
				e.Key = "k"
			}
			if !yield(line, err) {
				return
			}
		}
	}
	other := &commands.Service{Store: openFast(t)}
	if _, err := load.Import(t.Context(), other, "cli:test", "x", forged, nil); err == nil {
		t.Error("the history was imported")
	}
	done, err := load.Replay(t.Context(), other, "cli:test", "x", forged, nil)
	if err != nil || len(done.Findings) != 1 || done.Findings[0].Code != audit.FindKey ||
		done.Findings[0].Pos != 2 {
		t.Errorf("findings %+v, %v; want V31 at 2", done.Findings, err)
	}
}
