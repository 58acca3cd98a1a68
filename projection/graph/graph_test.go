package graph_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/graph"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scenario is a ledger in which anything may happen to jobs that wait for each other.
type scenario struct {
	*commandstest.Scenario
	t      *testing.T
	random *rand.Rand
	jobs   []event.JobID
}

// pick returns up to most jobs to wait for.
func (s *scenario) pick(most int) (list []commands.Dependency) {
	for _, i := range s.random.Perm(len(s.jobs))[:min(len(s.jobs), s.random.IntN(most+1))] {
		list = append(list, commands.Dependency{Job: s.jobs[i], On: event.Ending(s.random.IntN(4))})
	}
	return list
}

// step does something.
func (s *scenario) step() {
	t, ctx := s.t, s.t.Context()
	var c commands.Command
	switch n := s.random.IntN(12); {
	case n < 5 || len(s.jobs) == 0:
		e := commands.Enqueue{Queue: "mail", Hold: s.random.IntN(5) == 0, After: s.pick(3), Before: s.pick(1)}
		added, err := s.Enqueue(ctx, "cli:test", e)
		if err == nil {
			s.jobs = append(s.jobs, added[0].Job.ID)
		} else if !errors.Is(err, commands.ErrConflict) {
			t.Fatal(err)
		}
		return
	case n < 8:
		claimed, err := s.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"},
			Worker: event.Worker{Name: "w", Boot: "boot-w"}, Limit: 1 + s.random.IntN(2)})
		check(t, err)
		for _, j := range claimed {
			var end commands.Command = commands.Succeed{Token: j.Token}
			if n == 5 {
				end = commands.Fail{Token: j.Token, NoRetry: true}
			}
			_, err := s.Apply(ctx, "worker:w", j.ID, end)
			check(t, err)
		}
		return
	case n == 8:
		c = commands.Retry{}
	case n == 9:
		c = commands.Cancel{}
	default:
		c = commands.Unblock{}
	}
	if _, err := s.Apply(ctx, "cli:test", s.jobs[s.random.IntN(len(s.jobs))], c); err != nil &&
		!errors.Is(err, commands.ErrConflict) {
		t.Fatal(err)
	}
}

// truth is what the events up to a position say of the jobs that wait, and who was to wait for whom.
type truth struct {
	refs  []string // parent, child and ending
	waits map[string]graph.Wait
	held  map[event.JobID]bool
	state map[event.JobID]event.State
}

func truthOf(t *testing.T, tx *ledger.Tx, until int64) truth {
	t.Helper()
	out := truth{waits: make(map[string]graph.Wait), held: make(map[event.JobID]bool),
		state: make(map[event.JobID]event.State)}
	numbers, ids := make(map[event.JobID]int64), make(map[int64]event.JobID)
	fold := &deps.Fold{Find: func(id event.JobID, _ int64) (int64, event.State, error) {
		return numbers[id], out.state[id], nil
	}}
	for e, err := range tx.Events(t.Context(), ledger.Filter{Until: until}) {
		check(t, err)
		if b, ok := e.Body.(*event.Enqueued); ok {
			numbers[e.Job], ids[e.N] = e.N, e.Job
			for _, text := range b.After {
				id, on, err := event.ParseReference(text)
				check(t, err)
				out.refs = append(out.refs, fmt.Sprint(id, e.Job, on))
			}
			for _, text := range b.Before {
				id, on, err := event.ParseReference(text)
				check(t, err)
				out.refs = append(out.refs, fmt.Sprint(e.Job, id, on))
			}
		}
		wrong, err := fold.Add(&e)
		if err != nil || wrong != "" {
			t.Fatal(wrong, err)
		}
		if e.Seq != 0 {
			out.state[e.Job] = e.To
		}
	}
	for child, edges := range fold.Edges {
		if out.state[ids[child]] != event.Blocked {
			continue
		}
		for parent, edge := range edges {
			switch is := graph.Open; {
			case parent == 0:
				out.held[ids[child]] = !edge.Met
			default:
				if edge.Broken {
					is = graph.Broken
				} else if edge.Met {
					is = graph.Met
				}
				out.waits[fmt.Sprint(ids[parent], ids[child])] = is
			}
		}
	}
	return out
}

// compare compares what is around a job with the truth.
func (s *scenario) compare(tx *ledger.Tx, id event.JobID, m projection.Moment, want truth) {
	t := s.t
	j, ok, err := projection.Get(t.Context(), tx, id)
	check(t, err)
	if ok && !m.IsNow() {
		j, _, err = projection.JobAsOf(t.Context(), tx, j.N, m)
		check(t, err)
	}
	if j.State == 0 {
		return // not yet
	}
	g, err := graph.Around{Job: j, At: m, Depth: 2}.Read(t.Context(), tx)
	check(t, err)
	if g.More() > 0 || g.Unread || g.AtLeast {
		return
	}
	var got, near []string
	for _, e := range g.Edges {
		if e.Parent == id || e.Child == id {
			got = append(got, fmt.Sprint(e.Parent, e.Child, e.On))
		}
		if is, waits := want.waits[fmt.Sprint(e.Parent, e.Child)]; waits && is != e.Is ||
			!waits && e.Is == graph.Open {
			t.Errorf("at %d: %s waits for %s: it is %q, and by the events %q", m.Pos, e.Child, e.Parent, e.Is, is)
		}
	}
	for _, ref := range want.refs {
		if strings.Contains(ref, string(id)) {
			near = append(near, ref)
		}
	}
	slices.Sort(got)
	slices.Sort(near)
	if !slices.Equal(got, slices.Compact(near)) {
		t.Errorf("at %d: around %s are\n%s\nwant\n%s", m.Pos, id, strings.Join(got, "\n"), strings.Join(near, "\n"))
	}
	for _, n := range g.Nodes {
		if n.Job.State != want.state[n.Job.ID] || n.Held != want.held[n.Job.ID] {
			t.Errorf("at %d: %s is %s, held %v; want %s, %v", m.Pos, n.Job.ID, n.Job.State, n.Held,
				want.state[n.Job.ID], want.held[n.Job.ID])
		}
	}
}

// What is around a job is what the events say, now and at moments of the past.
func TestGraphIsThatOfTheEvents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(ledgertest.Size(3, 12, 60)) {
		s := &scenario{commandstest.New(t), t, rand.New(rand.NewPCG(36, seed)), nil}
		for range 60 {
			s.step()
		}
		_, err := (&commands.Sweeper{Service: s.Service, Actor: "sweeper:test"}).Sweep(t.Context())
		check(t, err)
		check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			want := truthOf(t, tx, 0)
			for _, id := range s.jobs {
				s.compare(tx, id, projection.Now(s.Now), want)
			}
			for range 6 {
				m, err := projection.AtPos(t.Context(), tx, 1+s.random.Int64N(s.Tail()))
				check(t, err)
				want := truthOf(t, tx, m.Pos)
				for range 10 {
					s.compare(tx, s.jobs[s.random.IntN(len(s.jobs))], m, want)
				}
			}
			return nil
		}))
		s.Verify()
	}
}

// Of many siblings a few are nodes, and the others are counted by state.
func TestGraphFoldsSiblings(t *testing.T) {
	t.Parallel()
	s := &scenario{commandstest.New(t), t, nil, nil}
	parent, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"})
	check(t, err)
	var many []commands.Enqueue
	for range 50 {
		many = append(many, commands.Enqueue{Queue: "parts", After: []commands.Dependency{{Job: parent[0].Job.ID}}})
	}
	_, err = s.Enqueue(t.Context(), "cli:test", many...)
	check(t, err)
	check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		g, err := graph.Around{Job: parent[0].Job, At: projection.Now(s.Now), Depth: 3}.Read(t.Context(), tx)
		want := []graph.Fold{{Of: parent[0].Job.ID, After: true, State: event.Blocked, Jobs: 44}}
		if len(g.Nodes) != 7 || len(g.Edges) != 6 || g.More() != 44 || !slices.Equal(g.Folded, want) {
			t.Errorf("%d nodes, %d edges, folded %v, want %v", len(g.Nodes), len(g.Edges), g.Folded, want)
		}
		return err
	}))
	s.Verify()
}
