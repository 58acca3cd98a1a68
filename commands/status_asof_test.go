package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/keyframe"
	limits "jobledger/projection/limit"
	"jobledger/projection/status"
)

// TestStatusAsOfEqualsFold compares the status of every moment with a plain fold of the events: without
// keyframes, where the last one cannot be read, and with all of them.
func TestStatusAsOfEqualsFold(t *testing.T) {
	t.Parallel()
	q := commandstest.ManyWays(t)
	wantFolds(t, q, "without keyframes")
	if added, err := keyframe.Extend(t.Context(), q.Store, 4); err != nil || added < 5 {
		t.Fatalf("%d keyframes, %v", added, err)
	}
	wantFolds(t, q, "with keyframes")
	err := q.Store.Write(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(`UPDATE keyframes SET ended = '[]' WHERE pos = (SELECT max(pos) FROM keyframes)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFolds(t, q, "where the last keyframe cannot be read")
	if _, err := q.Rebuild(t.Context(), "cli:test"); err != nil {
		t.Fatal(err)
	}
}

// folded is what a fold says of a queue or a group.
type folded struct {
	jobs        map[event.State]int64
	ready, live int64
}

func wantFolds(t *testing.T, q *commandstest.Scenario, how string) {
	t.Helper()
	ctx := t.Context()
	err := q.Store.Read(ctx, func(tx *ledger.Tx) error {
		jobs, tail := make(map[int64]projection.Job), int64(0)
		var events []event.Event
		for e, err := range tx.Events(ctx, ledger.Filter{}) {
			if err != nil {
				return err
			}
			events, tail = append(events, e), e.Pos
		}
		end := make(map[int64]projection.Job)
		for _, e := range events {
			if e.N > 0 {
				j, err := projection.Evolve(end[e.N], e)
				if err != nil {
					return err
				}
				end[e.N] = j
			}
		}
		for _, e := range events {
			if e.N > 0 {
				j, err := projection.Evolve(jobs[e.N], e)
				if err != nil {
					return err
				}
				jobs[e.N] = j
			}
			m, err := projection.AtPos(ctx, tx, e.Pos)
			if err != nil {
				return err
			}
			queues, groups := foldAt(jobs, m.At)
			now, _ := foldAt(end, m.At)
			found, err := status.Queues{At: m}.Read(ctx, tx)
			if err != nil {
				return err
			}
			for _, s := range found {
				want := queues[s.Name]
				delete(queues, s.Name)
				if !maps.Equal(s.Jobs, want.jobs) || s.Ready != want.ready || !maps.Equal(s.Now, now[s.Name].jobs) {
					t.Errorf("%s, as of %d of %d: %s has %v, %d ready, and now %v, want %v, %d, %v", how, e.Pos, tail,
						s.Name, s.Jobs, s.Ready, s.Now, want.jobs, want.ready, now[s.Name].jobs)
				}
			}
			if len(queues) > 0 {
				t.Errorf("%s, as of %d: there are no %v", how, e.Pos, queues)
			}
			waiting, _, err := status.Groups(ctx, tx, "mail", m)
			if err != nil {
				return err
			}
			got, want := "", ""
			for _, w := range waiting {
				got += fmt.Sprintf(" %s:%d,%d", w.Group, w.Queued, w.Live)
			}
			for _, name := range []string{"x", "y"} {
				if g := groups[name]; g.live+g.jobs[event.Queued] > 0 {
					want += fmt.Sprintf(" %s:%d,%d", name, g.jobs[event.Queued], g.live)
				}
			}
			if got != want {
				t.Errorf("%s, as of %d: groups%s, want%s", how, e.Pos, got, want)
			}
			limited, err := status.Limits(ctx, tx, m)
			if err != nil {
				return err
			}
			mail := foldMail(jobs, m.At)
			for _, j := range jobs {
				if j.State != event.Queued {
					continue
				}
				why, err := status.Explain(ctx, tx, j, m)
				if err != nil {
					return err
				}
				ahead, higher := foldBefore(jobs, j, m.At)
				holders := int64(len(why.Holders))
				if why.Ahead != ahead || why.Higher != higher || j.Queue == "mail" && holders != mail.live {
					t.Errorf("%s, as of %d: %d and %d jobs before %d, %d hold slots, want %d, %d, %d", how, e.Pos, why.Ahead,
						why.Higher, j.N, holders, ahead, higher, mail.live)
				}
			}
			v, err := audit.VerifySince(ctx, tx, e.Pos, nil)
			if err != nil {
				return err
			}
			for _, f := range v.Findings {
				if f.Code != audit.FindKeyframe {
					t.Errorf("%s: verify since %d: %v", how, e.Pos, f)
				}
			}
			for _, l := range limited {
				if l.Live != mail.live || l.Ready != mail.ready {
					t.Errorf("%s, as of %d: %d live and %d ready, want %d and %d", how, e.Pos, l.Live, l.Ready, mail.live,
						mail.ready)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func foldMail(jobs map[int64]projection.Job, at time.Time) folded {
	queues, _ := foldAt(jobs, at)
	return queues["mail"]
}

// foldBefore counts the jobs that are claimed before j.
func foldBefore(jobs map[int64]projection.Job, j projection.Job, at time.Time) (ahead, higher int64) {
	for _, o := range jobs {
		switch {
		case o.State != event.Queued || o.Queue != j.Queue:
		case o.Priority == j.Priority && o.Group == j.Group:
			if o.RunAt.Before(j.RunAt) || o.RunAt.Equal(j.RunAt) && o.ID < j.ID {
				ahead++
			}
		case o.Priority > j.Priority && !o.RunAt.After(at):
			higher++
		}
	}
	return ahead, higher
}

// foldAt counts jobs by queue, and those of the queue mail by group.
func foldAt(jobs map[int64]projection.Job, at time.Time) (queues, groups map[string]folded) {
	queues, groups = make(map[string]folded), make(map[string]folded)
	for _, j := range jobs {
		queues[j.Queue] = queues[j.Queue].add(j, at)
		if j.Queue == "mail" && j.Group != "" {
			groups[j.Group] = groups[j.Group].add(j, at)
		}
	}
	return queues, groups
}

func (f folded) add(j projection.Job, at time.Time) folded {
	if f.jobs == nil {
		f.jobs = make(map[event.State]int64)
	}
	f.jobs[j.State]++
	if j.State == event.Queued && !j.RunAt.After(at) {
		f.ready++
	}
	if j.State.Held() {
		f.live++
	}
	return f
}

// TestStatusNowEqualsTail: the status of now, which reads indexes, is that of the last moment, which adds up
// events: at every event of a ledger as it grows, with and without keyframes.
func TestStatusNowEqualsTail(t *testing.T) {
	t.Parallel()
	q := &queue{commandstest.New(t)}
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	same := func(when string) {
		t.Helper()
		check(q.Store.Read(ctx, func(tx *ledger.Tx) error {
			m, err := projection.AtTime(ctx, tx, q.Now)
			if err != nil {
				return err
			}
			var texts []string
			for _, at := range []projection.Moment{projection.Now(q.Now), m} {
				queues, err := status.Queues{At: at, Stranded: true}.Read(ctx, tx)
				if err != nil {
					return err
				}
				workers, err := status.Workers{At: at}.Read(ctx, tx)
				if err != nil {
					return err
				}
				both, crew, err := status.Both{At: at}.Read(ctx, tx)
				if err != nil {
					return err
				}
				alone := asText(t, queues, workers)
				if both := asText(t, both, crew); both != alone {
					t.Errorf("%s: both and alone differ: %s", when, firstDifference(both, alone))
				}
				others, err := askAboutLimits(ctx, tx, at)
				if err != nil {
					return err
				}
				texts = append(texts, alone+asText(t, others))
			}
			if texts[0] != texts[1] {
				t.Errorf("%s: now and as of the tail differ: %s", when, firstDifference(texts[0], texts[1]))
			}
			return nil
		}))
	}
	old, crew := worker("old"), worker("w1")
	old.Version = "v0"
	check(q.WorkerStarted(ctx, old, []string{"bill"}, nil))
	check(q.WorkerStarted(ctx, crew, []string{"mail"}, []string{"gpu"}))
	_, err := q.Limit(ctx, "cli:test", "mail", limits.Spec{Running: 4, PerGroup: 1}, "r")
	check(err)
	for round := range 6 {
		a := q.enqueue(commands.Enqueue{Group: "x", MaxAttempts: 2})
		b := q.enqueue(commands.Enqueue{After: after(a)})
		q.enqueue(commands.Enqueue{Queue: "bill", Version: "v1", Priority: round})
		q.enqueue(commands.Enqueue{RunAt: q.Now.Add(time.Minute)})
		q.enqueue(commands.Enqueue{Queue: "hold", Hold: true})
		same("enqueued")
		c := q.claimOne("w1", func(r *commands.ClaimRequest) { r.Lease = 20 * time.Second })
		same("claimed")
		q.Now = q.Now.Add(8 * time.Second)
		check(q.Present(ctx, crew))
		switch round % 3 {
		case 0:
			q.command(c, commands.Fail{Token: c.Token, Code: "e"})
			same("failed")
		case 1:
			q.Now = q.Now.Add(25 * time.Second) // its lease is over
			same("expired")
			q.sweep()
		default:
			q.command(a, commands.Cancel{Reason: "r"}) // with b
			q.command(a, commands.Retry{})
		}
		same("after round " + fmt.Sprint(round))
		_, err = q.Pause(ctx, "cli:test", "bill", "r")
		check(err)
		if round == 3 {
			_, err := keyframe.Extend(ctx, q.Store, 4)
			check(err)
		}
		q.Now = q.Now.Add(50 * time.Second)
		same("later")
		q.command(b, commands.Reschedule{Priority: &round})
		_, err = q.Resume(ctx, "cli:test", "bill", "r")
		check(err)
	}
	same("at the end")
}

// askAboutLimits returns the limits, the groups of the queue mail, and why each job is in its state; without
// what is known of now only.
func askAboutLimits(ctx context.Context, tx *ledger.Tx, at projection.Moment) (found []any, err error) {
	limited, err := status.Limits(ctx, tx, at)
	if err != nil {
		return nil, err
	}
	groups, of, err := status.Groups(ctx, tx, "mail", at)
	for i := range groups {
		groups[i].Eligible = 0
	}
	found = append(found, limited, groups, of)
	if err != nil {
		return nil, err
	}
	jobs, err := projection.List(ctx, tx, projection.Filter{})
	for _, j := range jobs {
		if err == nil {
			var why status.Why
			why, err = status.Explain(ctx, tx, j, at)
			why.Groups = 0
			found = append(found, why)
		}
	}
	return found, err
}

func asText(t *testing.T, values ...any) string {
	t.Helper()
	text, err := json.MarshalIndent(values, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), `"Requires": []`, `"Requires": null`)
}

// firstDifference is the first line in which two texts differ, with what stands around it.
func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			from, to := max(0, i-8), i+2
			return fmt.Sprintf("line %d\n%s\nand\n%s", i, strings.Join(as[from:min(to, len(as))], "\n"),
				strings.Join(bs[from:min(to, len(bs))], "\n"))
		}
	}
	return fmt.Sprintf("%d and %d lines", len(as), len(bs))
}
