package lineartest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// A family is a key that is unique while a job has not ended, the jobs that have had it one after another,
// and jobs that wait for these. A family is one object of the model: its calls have one order.

// familyCall is a call about a family.
type familyCall struct {
	Op      string // enqueue, claim, succeed, cancel, retry, child or get
	ID      event.JobID
	Token   string
	Payload string
	Replace bool
	On      event.Ending
}

// familyAnswer is its answer. State is that of the job afterwards.
type familyAnswer struct {
	ID                 event.JobID
	State              event.State
	Token, Payload     string
	Existing, Replaced bool
	Err                string
}

type familyJob struct {
	ID             event.JobID
	State          event.State
	Token, Payload string
	Parent         event.JobID // of a child
	On             event.Ending
	Waits          bool // it is blocked, or was cancelled because of its parent
	Open           bool // its last claim was cancelled, and its command may run
}

// family is the state of the model.
type family []familyJob

func (f family) find(id event.JobID) int {
	return slices.IndexFunc(f, func(j familyJob) bool { return j.ID == id })
}

// holder returns the place of the job that has the key, or −1.
func (f family) holder() int {
	return slices.IndexFunc(f, func(j familyJob) bool { return j.Parent == "" && !j.State.Final() })
}

// inState sets a job's state, and what follows from it for its children.
func (f family) inState(i int, to event.State) {
	f[i].State = to
	for n := range f {
		if child := &f[n]; child.Parent == f[i].ID && child.Waits {
			f.judge(child, to)
		}
	}
}

func (f family) judge(child *familyJob, parent event.State) {
	switch {
	case child.On.Meets(parent):
		child.State, child.Waits = event.Queued, false
	case parent.Final():
		child.State = event.CancelledState
	default:
		child.State = event.Blocked
	}
}

// step returns the family after a call, and whether the answer is right.
func (f family) step(c familyCall, a familyAnswer) (family, bool) {
	f = slices.Clone(f)
	holder, i := f.holder(), f.find(c.ID)
	switch c.Op {
	case "enqueue":
		if open := slices.ContainsFunc(f, func(j familyJob) bool {
			return j.Open && j.State == event.CancelledState
		}); open && holder < 0 {
			return f, a.Err == "conflict"
		}
		if holder < 0 {
			return append(f, familyJob{ID: a.ID, State: event.Queued, Payload: c.Payload}),
				a.Err == "" && !a.Existing && f.find(a.ID) < 0 && a.State == event.Queued
		}
		j := &f[holder]
		replaces := c.Replace && c.Payload != j.Payload
		if replaces && j.State != event.Queued {
			return f, a.Err == "conflict"
		}
		if replaces {
			j.Payload = c.Payload
		}
		return f, a.Err == "" && a.ID == j.ID && a.Existing && a.Replaced == replaces && a.State == j.State
	case "claim":
		if holder < 0 || f[holder].State != event.Queued {
			return f, a.Err == "none"
		}
		j := &f[holder]
		j.State, j.Token, j.Open = event.ClaimedState, a.Token, false
		return f, a.Err == "" && a.ID == j.ID && a.Payload == j.Payload
	case "succeed":
		if f[i].State != event.ClaimedState || f[i].Token != c.Token {
			return f, a.Err == "lost" || a.Err == "cancelled"
		}
		f.inState(i, event.SucceededState)
		return f, a.Err == "" && a.State == event.SucceededState
	case "cancel":
		if f[i].State.Final() && f[i].State != event.CancelledState {
			return f, a.Err == "conflict"
		}
		if f[i].State != event.CancelledState {
			f[i].Open = f[i].Open || f[i].State == event.ClaimedState
			f.inState(i, event.CancelledState)
		}
		return f, a.Err == "" && a.State == event.CancelledState
	case "retry":
		if !f[i].State.Final() || holder >= 0 {
			return f, a.Err == "conflict"
		}
		f[i].Open = false
		f.inState(i, event.Queued)
		return f, a.Err == "" && a.State == event.Queued
	case "child":
		child := familyJob{ID: a.ID, Parent: c.ID, On: c.On, Waits: true}
		f.judge(&child, f[i].State)
		return append(f, child), a.Err == "" && f.find(a.ID) < 0 && a.State == child.State
	case "get":
		return f, a.Err == "" && a.State == f[i].State
	}
	return f, false
}

var familyModel = porcupine.Model{
	Init: func() any { return family(nil) },
	Step: func(state, input, output any) (bool, any) {
		after, right := state.(family).step(input.(familyCall), output.(familyAnswer))
		return right, after
	},
	Equal: func(a, b any) bool { return reflect.DeepEqual(a, b) },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v: %+v", input, output)
	},
}

// familyClient makes calls about families, and records them.
type familyClient struct {
	api  linearAPI
	rng  *rand.Rand
	ids  [][]event.JobID         // by family: jobs with the key
	kids [][]event.JobID         // by family
	held [][]projection.Job      // by family
	ops  [][]porcupine.Operation // by family
	n    int                     // of this client
}

func (c *familyClient) next(ctx context.Context) {
	n := c.rng.IntN(len(c.ops))
	call := familyCall{Op: "enqueue", Payload: oneOf(c.rng, "a", "b"), Replace: c.rng.IntN(2) == 0}
	known := append(slices.Clone(c.ids[n]), c.kids[n]...)
	switch draw := c.rng.IntN(10); {
	case draw < 3 || len(c.ids[n]) == 0:
	case draw < 5:
		call = familyCall{Op: "claim"}
		if held := c.held[n]; len(held) > 0 {
			call = familyCall{Op: "succeed", ID: held[0].ID, Token: held[0].Token}
			c.held[n] = held[1:]
		}
	case draw < 6:
		call = familyCall{Op: "child", ID: oneOf(c.rng, c.ids[n]...),
			On: oneOf(c.rng, event.OnSucceeded, event.OnFinished)}
	case draw < 7:
		call = familyCall{Op: "cancel", ID: oneOf(c.rng, c.ids[n]...)}
	case draw < 8:
		call = familyCall{Op: "retry", ID: oneOf(c.rng, c.ids[n]...)}
	default:
		call = familyCall{Op: "get", ID: oneOf(c.rng, known...)}
	}
	begun := monotonic()
	answer := c.do(ctx, n, call)
	c.ops[n] = append(c.ops[n], porcupine.Operation{ClientId: c.n, Input: call, Call: begun, Output: answer,
		Return: monotonic()})
}

func (c *familyClient) do(ctx context.Context, n int, call familyCall) (a familyAnswer) {
	var j projection.Job
	var err error
	var was commands.Enqueued
	past := time.Unix(1e9, 0) // so that a job is ready at once, whatever a clock says
	switch call.Op {
	case "enqueue":
		e := commands.Enqueue{Queue: fmt.Sprint("f", n), Key: "k", UniqueWhile: event.WhileUnfinished, RunAt: past,
			Payload: []byte(call.Payload), MaxAttempts: 1}
		if call.Replace {
			e.OnDuplicate = commands.ReplaceDuplicate
		}
		was, err = c.api.enqueue(ctx, e)
		j = was.Job
	case "child":
		was, err = c.api.enqueue(ctx, commands.Enqueue{Queue: "children", Payload: []byte("child"), RunAt: past,
			After: []commands.Dependency{{Job: call.ID, On: call.On}}})
		j = was.Job
	case "claim":
		var got []projection.Job
		got, err = c.api.claim(ctx, commands.ClaimRequest{Queues: []string{fmt.Sprint("f", n)}, Limit: 1,
			Lease: time.Hour, Worker: event.Worker{Name: "w", Boot: "w"}})
		if err == nil && len(got) == 0 {
			return familyAnswer{Err: "none"}
		}
		if err == nil {
			j = got[0]
			c.held[n] = append(c.held[n], j)
		}
	case "succeed":
		j, err = c.api.do(ctx, projection.Job{ID: call.ID}, commands.Succeed{Token: call.Token})
	case "cancel":
		j, err = c.api.do(ctx, projection.Job{ID: call.ID}, commands.Cancel{})
	case "retry":
		j, err = c.api.do(ctx, projection.Job{ID: call.ID}, commands.Retry{Now: true})
	case "get":
		j, err = c.api.get(ctx, call.ID)
	}
	switch {
	case errors.Is(err, commands.ErrLeaseLost):
		return familyAnswer{Err: "lost"}
	case errors.Is(err, commands.ErrCancelled):
		return familyAnswer{Err: "cancelled"}
	case errors.Is(err, commands.ErrConflict):
		return familyAnswer{Err: "conflict"}
	case err != nil:
		return familyAnswer{Err: err.Error()}
	}
	switch {
	case call.Op == "child":
		c.kids[n] = append(c.kids[n], j.ID)
	case call.Op == "enqueue" && !slices.Contains(c.ids[n], j.ID):
		c.ids[n] = append(c.ids[n], j.ID)
	}
	return familyAnswer{ID: j.ID, State: j.State, Token: j.Token, Payload: string(j.Payload),
		Existing: was.Existing, Replaced: was.Replaced}
}

// families lets several stores with several clients each make calls, and returns the calls of each family.
func (h *history) families(n, stores, clients, calls int, api func(asIs) linearAPI) [][]porcupine.Operation {
	ops := make([][]porcupine.Operation, n)
	var mu sync.Mutex
	var all sync.WaitGroup
	for s := range stores {
		service := &commands.Service{Store: h.open(h.store.DSN())}
		for k := range clients {
			c := &familyClient{api: api(asIs{service}),
				rng: rand.New(rand.NewPCG(rand.Uint64(), 1)), ids: make([][]event.JobID, n),
				kids: make([][]event.JobID, n), held: make([][]projection.Job, n),
				ops: make([][]porcupine.Operation, n), n: s*clients + k}
			all.Go(func() {
				for range calls {
					c.next(h.t.Context())
				}
				mu.Lock()
				defer mu.Unlock()
				for i := range ops {
					ops[i] = append(ops[i], c.ops[i]...)
				}
			})
		}
	}
	all.Wait()
	return ops
}

// TestFamiliesAreLinearizable runs clients of several stores that use keys which are unique while a job has
// not ended, and enqueue jobs that wait for these. Each of the broken ways to do that must be detected.
func TestFamiliesAreLinearizable(t *testing.T) {
	for _, test := range []struct {
		name string
		api  func(asIs) linearAPI
		op   string // what is done wrongly; "": nothing
	}{
		{"the program", func(s asIs) linearAPI { return s }, ""},
		{"look for the key, then enqueue", func(s asIs) linearAPI { return looksForTheKey{s} }, "enqueue"},
		{"look at the parent, then enqueue", func(s asIs) linearAPI { return looksAtTheParent{s} }, "child"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rounds := ledgertest.Size(1, 2, 8)
			most := 10 * rounds // until each answer was given, which the threads' timing decides
			if test.op != "" {
				most = 100 // until it is detected
			}
			counts := make(map[string]int)
			missing := func() (answers []string) {
				for _, answer := range []string{"enqueue existing", "enqueue replaced", "enqueue conflict", "claim none",
					"succeed lost", "retry queued", "retry conflict", "child blocked", "child cancelled", "get blocked"} {
					if counts[answer] == 0 && ledgertest.Long() && test.op == "" {
						answers = append(answers, answer)
					}
				}
				return answers
			}
			for round := range most {
				if test.op == "" && round >= rounds && len(missing()) == 0 {
					break
				}
				h := newHistory(t, 0)
				ops := h.families(2, 2, 2, 40, test.api)
				wrong := ""
				for _, of := range ops {
					for _, o := range of {
						counts[fmt.Sprint(o.Input.(familyCall).Op, " ", answered(o.Output.(familyAnswer)))]++
					}
					if porcupine.CheckOperations(familyModel, of) {
						continue
					}
					wrong = "the calls about a family have no order that explains them"
					if test.op == "" {
						for _, o := range of {
							t.Logf("%d %d–%d %s", o.ClientId, o.Call, o.Return, familyModel.DescribeOperation(o.Input, o.Output))
						}
						t.Fatal(wrong)
					}
				}
				if test.op == "" {
					commandstest.Verify(t, h.store)
				}
				if wrong != "" {
					return
				}
			}
			t.Log(counts)
			if answers := missing(); len(answers) > 0 {
				t.Errorf("never answered: %q", answers)
			}
			if test.op != "" {
				t.Errorf("not found in %d histories", most)
			}
		})
	}
}

// answered returns a word for the kind of an answer.
func answered(a familyAnswer) string {
	switch {
	case a.Err != "":
		return a.Err
	case a.Replaced:
		return "replaced"
	case a.Existing:
		return "existing"
	}
	return a.State.String()
}

// looksForTheKey asks whether the key is taken in one transaction, and enqueues without it in another.
type looksForTheKey struct{ asIs }

func (s looksForTheKey) enqueue(ctx context.Context, e commands.Enqueue) (commands.Enqueued, error) {
	if e.Key == "" {
		return s.asIs.enqueue(ctx, e)
	}
	var jobs []projection.Job
	err := s.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		jobs, err = projection.List(ctx, tx, projection.Filter{Queues: []string{e.Queue}})
		return err
	})
	if err != nil {
		return commands.Enqueued{}, err
	}
	for _, j := range jobs {
		if !j.State.Final() {
			return s.asIs.enqueue(ctx, e)
		}
	}
	time.Sleep(rand.N(3 * time.Millisecond)) // widens the race
	e.Key, e.UniqueWhile, e.OnDuplicate = "", "", ""
	return s.asIs.enqueue(ctx, e)
}

// looksAtTheParent asks whether the parent has ended in one transaction, and holds the job in another if not.
type looksAtTheParent struct{ asIs }

func (s looksAtTheParent) enqueue(ctx context.Context, e commands.Enqueue) (commands.Enqueued, error) {
	if len(e.After) == 0 {
		return s.asIs.enqueue(ctx, e)
	}
	parent, err := s.get(ctx, e.After[0].Job)
	if err != nil || parent.State.Final() {
		return s.asIs.enqueue(ctx, e)
	}
	time.Sleep(rand.N(3 * time.Millisecond)) // widens the race
	e.After, e.Hold = nil, true
	return s.asIs.enqueue(ctx, e)
}
