package commands_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/group"
	limits "jobledger/projection/limit"
)

func TestGroupsTakeJobsInRotation(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 4} {
		q := newQueue(t)
		for i := range 100 {
			q.enqueue(commands.Enqueue{Group: "a", Payload: fmt.Append(nil, "a", i)})
		}
		q.Now = q.Now.Add(time.Second)
		for i := range 10 {
			q.enqueue(commands.Enqueue{Group: "b", Payload: fmt.Append(nil, "b", i)})
			q.enqueue(commands.Enqueue{Group: "c", Payload: fmt.Append(nil, "c", i)})
		}
		var order []string
		for len(order) < 36 {
			q.Now = q.Now.Add(time.Second)
			for _, j := range q.claim("w", limit(size)) {
				order = append(order, string(j.Payload))
				q.succeed(j)
			}
		}
		// The first of a was due before the others came; from then on each group has every third claim.
		for i, name := range order[:30] {
			if want := []string{"a", "b", "c"}[i%3] + fmt.Sprint(i/3); name != want {
				t.Fatalf("with %d at once, claim %d took %s, want %s: %v", size, i, name, want, order)
			}
		}
		if got := strings.Join(order[30:], ""); got != "a10a11a12a13a14a15" {
			t.Errorf("with %d at once, the rest is %s", size, got)
		}
		q.Verify()
	}
}

// TestGroupsWithManyJobsDelayOthersByTwoRounds: a customer with 10,000 jobs delays the ten of another by two
// rounds at most, however many are claimed at once and by which process. A round is a claim for each group.
func TestGroupsWithManyJobsDelayOthersByTwoRounds(t *testing.T) {
	t.Parallel()
	const few, groups = 10, 2
	for _, size := range []int{1, 3, 16} {
		q := newQueue(t)
		second := commandstest.On(t, ledgertest.OpenAt(t, q.Store.DSN()))
		second.Now = q.Now
		other := &queue{second}
		many := make([]commands.Enqueue, ledgertest.Size(200, 500, 3000))
		for i := range many {
			many[i] = commands.Enqueue{Queue: "mail", Group: "a"}
		}
		if _, err := q.Enqueue(t.Context(), "cli:test", many...); err != nil {
			t.Fatal(err)
		}
		q.claim("w", limit(size)) // a has been served when b comes
		for range few {
			q.enqueue(commands.Enqueue{Group: "b"})
		}
		claims, ofB := 0, 0
		for by := 0; ofB < few && claims < 20*few; by++ {
			q.Now = q.Now.Add(time.Second)
			second.Now = q.Now
			for _, j := range []*queue{q, other}[by%2].claim("w", limit(size)) {
				claims++
				if j.Group != "b" {
					continue
				}
				if ofB++; claims > groups*(ofB+2) {
					t.Errorf("%d at once: job %d of b is claim %d, more than two rounds late", size, ofB, claims)
				}
			}
		}
		if ofB != few {
			t.Errorf("%d at once: %d of %d jobs of b in %d claims", size, ofB, few, claims)
		}
	}
}

func TestGroupPrioritiesComeFirst(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{Group: "a", Payload: []byte("low")})
	q.enqueue(commands.Enqueue{Payload: []byte("none")})
	q.enqueue(commands.Enqueue{Group: "b", Payload: []byte("high"), Priority: 5})
	q.enqueue(commands.Enqueue{Group: "b", Payload: []byte("later"), RunAt: q.Now.Add(time.Hour)})
	var got []string
	for _, j := range q.claim("w", limit(9)) {
		got = append(got, string(j.Payload))
	}
	if want := []string{"high", "low", "none"}; !slices.Equal(got, want) {
		t.Errorf("claimed %v, want %v", got, want)
	}
	ready, next, err := q.Ready(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
		Worker: event.Worker{Name: "w", Boot: "b"}})
	if err != nil || ready || !next.Equal(q.Now.Add(time.Hour)) {
		t.Errorf("ready %t at %s, %v; want the job of the hour", ready, next, err)
	}
}

func TestLimitPerGroupBoundsClaims(t *testing.T) {
	q := newQueue(t)
	for i := range 6 {
		q.enqueue(commands.Enqueue{Group: "a", Payload: fmt.Append(nil, "a", i)})
		q.enqueue(commands.Enqueue{Group: "b", Payload: fmt.Append(nil, "b", i), Priority: i % 2})
	}
	q.setLimit(limits.Spec{PerGroup: 2, Running: 3})
	first := q.claim("w", limit(9))
	if len(first) != 3 {
		t.Fatalf("claimed %d jobs, want 3", len(first))
	}
	q.setLimit(limits.Spec{PerGroup: 2})
	if more := q.claim("w", limit(9)); len(more) != 1 {
		t.Fatalf("claimed %d jobs, want the second one of a group", len(more))
	}
	if more := q.claim("w", limit(9)); len(more) != 0 {
		t.Fatalf("claimed %d jobs of full groups", len(more))
	}
	other := &commands.Service{Store: ledgertest.OpenAt(t, q.Store.DSN())} // knows nothing of the limits yet
	woken, stop := q.Store.Watch()
	defer stop()
	_, err := other.Apply(t.Context(), "worker:w", first[0].ID, commands.Fail{Token: first[0].Token,
		NoRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	<-woken
	more := q.claim("w", limit(9))
	if len(more) != 1 || more[0].Group != first[0].Group {
		t.Fatalf("claimed %d jobs after one had ended, want one of its group", len(more))
	}
	q.setLimit(limits.Spec{PerGroup: 3})
	if more := q.claim("w", limit(9)); len(more) != 2 {
		t.Fatalf("claimed %d jobs after the limit was raised, want one of each group", len(more))
	}
	q.setLimit(limits.Spec{})
	if more := q.claim("w", limit(9)); len(more) != 5 {
		t.Fatalf("claimed %d jobs without a limit, want the other 5", len(more))
	}
	q.Verify()
}

// TestGroupsAnyCommands lets two stores enqueue, claim, end, move and limit jobs of groups at random, and
// then judges every claim by the rules, from the events alone.
func TestGroupsAnyCommands(t *testing.T) {
	t.Parallel()
	for seed := range ledgertest.Size(2, 2, 20) {
		q := newQueue(t)
		second := commandstest.On(t, ledgertest.OpenAt(t, q.Store.DSN()))
		random := rand.New(rand.NewPCG(7, uint64(seed))) // #nosec G404 -- a test
		r := &randomGroups{queue: q, random: random, services: []*commands.Service{q.Service, second.Service}}
		for step := range 150 {
			q.Now = q.Now.Add(time.Duration(random.IntN(3)) * time.Second)
			second.Now = q.Now
			if err := r.step(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if step%50 == 49 {
				q.Verify()
			}
		}
		claims := wantFair(t, q.Store)
		if claims < 10 {
			t.Errorf("seed %d: only %d claims of groups", seed, claims)
		}
		q.rebuildsToTheSame()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// randomGroups are commands at random.
type randomGroups struct {
	*queue
	random   *rand.Rand
	services []*commands.Service
	held     []projection.Job
	all      []projection.Job
}

func (r *randomGroups) step() error {
	s := r.services[r.random.IntN(len(r.services))]
	ctx := r.T.Context()
	request := commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: "w", Boot: "b"},
		Limit: 1 + r.random.IntN(6)}
	if r.random.IntN(2) == 0 {
		request.Version = "v2"
	}
	switch kind := r.random.IntN(12); {
	case kind < 4:
		var jobs []commands.Enqueue
		for range 1 + r.random.IntN(4) {
			e := commands.Enqueue{Queue: "mail", Priority: r.random.IntN(2)}
			if n := r.random.IntN(5); n > 0 {
				e.Group = fmt.Sprint("g", n)
			}
			if r.random.IntN(3) == 0 {
				e.Version = "v2"
			}
			if r.random.IntN(4) == 0 {
				e.RunAt = r.Now.Add(time.Duration(r.random.IntN(5)) * time.Second)
			}
			jobs = append(jobs, e)
		}
		answers, err := s.Enqueue(ctx, "cli:test", jobs...)
		for _, a := range answers {
			r.all = append(r.all, a.Job)
		}
		return err
	case kind < 7:
		jobs, err := s.Claim(ctx, request)
		r.held = append(r.held, jobs...)
		return err
	case kind < 10 && len(r.held) > 0:
		var ops []commands.Op
		for range min(len(r.held), 1+r.random.IntN(3)) {
			i := r.random.IntN(len(r.held))
			j := r.held[i]
			r.held = slices.Delete(r.held, i, i+1)
			ops = append(ops, commands.Op{Job: j, Command: r.end(j)})
		}
		if r.random.IntN(2) == 0 {
			_, err := s.ApplyBatch(ctx, "worker:w", ops)
			return err
		}
		_, jobs, err := s.ApplyAndClaim(ctx, "worker:w", ops, request)
		r.held = append(r.held, jobs...)
		return err
	case kind == 10:
		if r.random.IntN(2) == 0 {
			to := limits.GroupSpec{Running: r.random.IntN(5), Rate: r.rate(4)}
			_, err := s.LimitGroup(ctx, "cli:test", "mail", fmt.Sprint("g", 1+r.random.IntN(4)), to, "")
			return err
		}
		to := limits.Spec{Running: r.random.IntN(8), PerGroup: r.random.IntN(3), PerGroupRate: r.rate(2)}
		_, err := s.Limit(ctx, "cli:test", "mail", to, "")
		return err
	case len(r.all) > 0:
		j := r.all[r.random.IntN(len(r.all))]
		var c commands.Command = commands.Cancel{}
		if r.random.IntN(2) == 0 {
			at, priority := r.Now.Add(time.Duration(r.random.IntN(4))*time.Second), r.random.IntN(2)
			c = commands.Reschedule{RunAt: &at, Priority: &priority}
		}
		r.held = slices.DeleteFunc(r.held, func(h projection.Job) bool {
			_, cancel := c.(commands.Cancel)
			return cancel && h.ID == j.ID
		})
		if _, err := s.Apply(ctx, "cli:test", j.ID, c); err != nil && !isConflict(err) {
			return err
		}
	}
	return nil
}

// rate returns a rate, once in so many times, and else none.
func (r *randomGroups) rate(once int) limits.Rate {
	if r.random.IntN(once) > 0 {
		return limits.Rate{}
	}
	return limits.Rate{N: 1 + r.random.IntN(2), Per: time.Duration(1+r.random.IntN(4)) * time.Second,
		Burst: r.random.IntN(3)}
}

func isConflict(err error) bool { return strings.Contains(err.Error(), "it ") }

func (r *randomGroups) end(j projection.Job) commands.Command {
	switch r.random.IntN(4) {
	case 0:
		return commands.Fail{Token: j.Token, RetryIn: new(time.Duration(r.random.IntN(3)) * time.Second)}
	case 1:
		return commands.Release{Token: j.Token}
	}
	return commands.Succeed{Token: j.Token}
}

// wantFair folds the events, and checks of every claim that the limits permitted it, and that no other group
// of its lane had waited for longer. It returns how many claims of groups there were.
func wantFair(t testing.TB, s *ledger.Store) (claims int) {
	t.Helper()
	type waiting struct{ at, pos int64 }
	jobs, served := make(map[int64]projection.Job), make(map[string]waiting)
	open := make(map[int64]projection.Job) // cancelled with a command that may run until the lease ends
	laneOf := func(j projection.Job) string {
		if j.State != event.Queued || j.Group == "" {
			return ""
		}
		return fmt.Sprint(j.Priority, " ", j.Version)
	}
	var bounds limits.Spec
	exceptions := make(map[string]limits.GroupSpec)
	boundOf := func(name string) int { return cmp.Or(exceptions[name].Running, bounds.PerGroup) }
	rateOf := func(name string) limits.Rate { return cmp.Or(exceptions[name].Rate, bounds.PerGroupRate) }
	starts := make(map[string][]int64) // by group, since its rate was set
	batch := make(map[string]int)      // how many of these are claims since the last event of another kind
	// when the rate lets the next job start
	nextBy := func(r limits.Rate, starts []int64) (at int64) {
		for i, started := range starts { // each start and the later ones take an interval each
			if r.N > 0 {
				interval := (r.Per.Microseconds() + int64(r.N) - 1) / int64(r.N)
				at = max(at, started+interval*int64(len(starts)-i-max(r.Burst, 1)+1))
			}
		}
		return at
	}
	earliest := func(name string) int64 { return nextBy(rateOf(name), starts[name]) }
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			if b, ok := e.Body.(*event.QueueLimited); ok {
				before := make(map[string]limits.Rate)
				for name := range starts {
					before[name] = rateOf(name)
				}
				if b.Group != "" {
					exceptions[b.Group] = limits.GroupSpec{Running: b.Running,
						Rate: limits.Rate{N: b.Rate, Per: b.RatePer, Burst: b.Burst}}
				} else if bounds = limits.SpecOf(b); bounds == (limits.Spec{}) {
					clear(exceptions)
				}
				for name, rate := range before {
					if rateOf(name) != rate {
						delete(starts, name)
						delete(batch, name)
					}
				}
			}
			if e.N == 0 {
				continue
			}
			j := jobs[e.N]
			after, err := projection.Evolve(j, e)
			if err != nil {
				return err
			}
			if e.Kind() != event.KindClaimed {
				clear(batch)
			} else {
				live, ofGroup := make(map[string]int), 0
				first := make(map[string]int64) // by group, in the lane of j
				for n, o := range jobs {
					if end, ok := open[n]; o.State.Held() || ok && end.LeaseUntil.After(e.At) {
						live[o.Group]++
						ofGroup++
					}
					if lane := laneOf(o); lane != "" && lane == laneOf(j) {
						if at := event.Micros(o.RunAt); first[o.Group] == 0 || at < first[o.Group] {
							first[o.Group] = at
						}
					}
				}
				if bounds.Running > 0 && ofGroup >= bounds.Running {
					t.Errorf("event %d: %d jobs were live, the limit is %d", e.Pos, ofGroup, bounds.Running)
				}
				if j.Group != "" {
					claims++
					if bound := boundOf(j.Group); bound > 0 && live[j.Group] >= bound {
						t.Errorf("event %d: %d jobs of %s were live, the limit is %d", e.Pos, live[j.Group], j.Group, bound)
					}
					if next := earliest(j.Group); event.Micros(e.At) < next {
						t.Errorf("event %d: a job of %s started %d µs before its rate allowed", e.Pos, j.Group,
							next-event.Micros(e.At))
					}
					key := func(name string) waiting {
						w := served[laneOf(j)+"/"+name]
						return waiting{max(first[name], w.at, earliest(name)), w.pos}
					}
					mine := key(j.Group)
					// One claim of several jobs may order the groups of a lane by the starts before it.
					before := starts[j.Group][:len(starts[j.Group])-batch[j.Group]]
					mine.at = min(mine.at, max(first[j.Group], served[laneOf(j)+"/"+j.Group].at,
						nextBy(rateOf(j.Group), before)))
					for name := range first {
						full := boundOf(name) > 0 && live[name] >= boundOf(name)
						other := key(name)
						if !full && cmp.Or(cmp.Compare(other.at, mine.at), cmp.Compare(other.pos, mine.pos)) < 0 {
							t.Errorf("event %d: claimed from %s although %s had waited for longer", e.Pos, j.Group, name)
						}
					}
					served[laneOf(j)+"/"+j.Group] = waiting{event.Micros(e.At), e.Pos}
					if rateOf(j.Group).N > 0 {
						starts[j.Group] = append(starts[j.Group], event.Micros(e.At))
						batch[j.Group]++
					}
				}
			}
			switch {
			case e.Kind() == event.KindCancelled && j.State.Held():
				open[e.N] = j
			case e.Kind() == event.KindStopped:
				delete(open, e.N)
			}
			before := laneOf(j)
			jobs[e.N] = after
			if before != "" && before != laneOf(after) { // a group that leaves a lane is forgotten there
				left := false
				for _, o := range jobs {
					left = left || laneOf(o) == before && o.Group == j.Group
				}
				if !left {
					delete(served, before+"/"+j.Group)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

func (q *queue) heads() (found []group.Head) {
	q.T.Helper()
	err := q.Store.Read(q.T.Context(), func(tx *ledger.Tx) (err error) {
		found, err = group.All(q.T.Context(), tx)
		return err
	})
	if err != nil {
		q.T.Fatal(err)
	}
	return found
}

// rebuildsToTheSame spoils the rows of groups, and wants a rebuild to make them as they were.
func (q *queue) rebuildsToTheSame() {
	q.T.Helper()
	before := q.heads()
	q.exec(`UPDATE group_heads SET served = 1, eligible_at = 5 WHERE grp = 'g1'`)
	q.exec(`DELETE FROM group_heads WHERE grp = 'g2'`)
	if _, err := q.Rebuild(q.T.Context(), "cli:test"); err != nil {
		q.T.Fatal(err)
	}
	if after := q.heads(); !slices.Equal(before, after) {
		q.T.Errorf("rebuilt to %+v, were %+v", after, before)
	}
	q.Verify()
}

// TestGroupsImported imports a history with groups in one transaction and in steps, and wants the same rows.
func TestGroupsImported(t *testing.T) {
	q := newQueue(t)
	for i := range 5 {
		q.enqueue(commands.Enqueue{Group: "a", RunAt: q.Now.Add(time.Duration(i) * time.Second)})
		q.enqueue(commands.Enqueue{Group: "b"})
	}
	q.Now = q.Now.Add(time.Minute)
	q.setLimit(limits.Spec{PerGroup: 2})
	q.claim("w", limit(3))
	for _, staging := range []bool{false, true} {
		other := commandstest.On(t, ledgertest.Open(t))
		other.Staging, other.Now = staging, q.Now
		_, err := load.Import(t.Context(), other.Service, "cli:test", "q",
			q.Store.Lines(t.Context(), ledger.Filter{}, true), nil)
		if err != nil {
			t.Fatal(err)
		}
		copied := &queue{other}
		if got, want := copied.heads(), q.heads(); !slices.Equal(got, want) || len(got) != 2 {
			t.Errorf("staging %t: imported %+v, want %+v", staging, got, want)
		}
		if j := copied.claim("v", limit(5)); len(j) != 1 {
			t.Errorf("staging %t: claimed %d jobs of the copy, want 1", staging, len(j))
		}
		err = other.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			v, err := audit.VerifySince(t.Context(), tx, 5, nil)
			if len(v.Findings) > 0 {
				t.Errorf("since 5: %+v", v.Findings)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestGroupsClockSetBack checks that groups that were served before the clock ran back are served on, and
// that their future jobs are not.
func TestGroupsClockSetBack(t *testing.T) {
	q := newQueue(t)
	q.Now = q.Now.Add(time.Hour)
	for range 4 {
		q.enqueue(commands.Enqueue{Group: "a", RunAt: q.Now.Add(-time.Hour)})
		q.enqueue(commands.Enqueue{Group: "b", RunAt: q.Now.Add(-time.Minute)})
	}
	q.claim("w", limit(2))
	q.Now = q.Now.Add(-30 * time.Minute)
	q.enqueue(commands.Enqueue{Group: "c", RunAt: q.Now.Add(time.Minute)})
	for _, e := range []string{"c", "d"} {
		j, second := q.enqueue(commands.Enqueue{Group: e}), q.enqueue(commands.Enqueue{Group: e})
		for _, want := range []projection.Job{j, second} {
			if got := q.claimOne("w"); got.ID != want.ID {
				t.Errorf("claimed a job of %s, want the one of %s, which is due", got.Group, e)
			}
		}
	}
	ready, next, err := q.Ready(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
		Worker: event.Worker{Name: "w", Boot: "b"}})
	if err != nil || ready || !next.Equal(q.Now.Add(time.Minute)) {
		t.Errorf("ready %t at %s, %v; want the job of a minute", ready, next, err)
	}
	q.Verify()
}
