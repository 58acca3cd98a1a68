//go:build unix

package faultvfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/ledgertest/faultvfs"
	"jobledger/projection"
)

// The script: one caller sends every command of the queue in a fixed order, and after an error sends the same
// command again, as callers must. However many errors occurred on the way, in the end the ledger has the
// content of a run without errors.

// caller runs the script.
type caller struct {
	client
	dir     string
	store   *ledger.Store // nil: closed
	queue   *commands.Service
	now     time.Time
	again   bool // this step was sent before, and its outcome is unknown
	held    map[string]projection.Job
	tokens  int
	answers []string // the answer to each step so far
}

// step is one command of the script.
type step struct {
	name  string
	send  func(c *caller) (answer, error)
	parts bool // it takes several transactions, or none
}

// answer formats the answer to a caller: equal answers give equal texts.
type answer struct {
	text  string
	facts []fact
}

// failure is a violated promise of a step, as opposed to an error that is allowed.
type failure struct{ error }

const (
	worker = "w"
	self   = "worker:" + worker
)

var me = event.Worker{Name: worker, Boot: "boot"}

func newCaller(disk *faultvfs.Disk, dir string) *caller {
	return &caller{client: client{disk: disk, actor: self}, dir: dir, held: make(map[string]projection.Job)}
}

// elsewhere returns c for another disk, with its ledger not opened yet.
func (c *caller) elsewhere(disk *faultvfs.Disk, dir string) *caller {
	fresh := newCaller(disk, dir)
	fresh.held, fresh.answers = maps.Clone(c.held), slices.Clone(c.answers)
	return fresh
}

func (c *caller) open() error {
	if c.store != nil {
		return nil
	}
	store, err := ledger.Open(context.Background(), filepath.Join(c.dir, "jobs.db"))
	if err != nil {
		return err
	}
	store.Now = func() time.Time { return c.now }
	c.store = store
	c.queue = &commands.Service{Store: store, NewID: c.newToken, NewSalt: func([]byte) {}}
	return nil
}

func (c *caller) close() error {
	if c.store == nil {
		return nil
	}
	err := c.store.Close()
	c.store = nil
	if n := c.disk.Files(); n > 0 {
		return failure{fmt.Errorf("the ledger is closed, and SQLite still has %d of its files open (%v)", n, err)}
	}
	return err
}

func (c *caller) newToken() string {
	c.tokens++
	return ulid.ULID{5: 1, 14: byte(c.tokens >> 8), 15: byte(c.tokens)}.String()
}

func jobID(name string) string { return ulid.ULID{5: 2, 15: name[0]}.String() }

// take sends step i.
func (c *caller) take(i int) error {
	s := script[i]
	c.tokens = 100 * i // the same when a step is repeated, so that the history does not show repetitions
	c.now = ledgertest.Epoch.Add(time.Duration(i) * time.Hour)
	return c.ask(s.parts, func() ([]fact, error) {
		a, err := s.send(c)
		if err != nil {
			return nil, err
		}
		c.answers = append(c.answers[:i], a.text)
		return a.facts, nil
	})
}

// tail returns the number of events.
func (c *caller) tail() (tail int64, err error) {
	err = read(c.store, func(tx *ledger.Tx) (err error) {
		tail, err = tx.Tail(context.Background())
		return err
	})
	return tail, err
}

// quietTail is tail without faults.
func (c *caller) quietTail() (tail int64) {
	if c.store != nil {
		c.disk.Quietly(func() { tail, _ = c.tail() })
	}
	return tail
}

func reopen(c *caller) (answer, error) { return answer{}, c.open() }

func enqueue(jobs ...commands.Enqueue) func(*caller) (answer, error) {
	return func(c *caller) (a answer, err error) {
		answers, err := c.queue.Enqueue(context.Background(), self, jobs...)
		for _, j := range answers {
			a.text += fmt.Sprint(j.ID, " ", j.N, " ", j.Key, "; ")
			a.facts = append(a.facts, jobFact(j.ID, 1))
		}
		return a, err
	}
}

// do sends cmd for the job of this name, with the token of the caller's copy.
func do(name string, cmd func(token string) commands.Command) func(*caller) (answer, error) {
	return func(c *caller) (answer, error) {
		command := cmd(c.held[name].Token)
		j, err := c.queue.Apply(context.Background(), self, event.JobID(jobID(name)), command)
		if c.again && errors.Is(err, commands.ErrConflict) { // the first attempt was committed
			j, err = c.job(name)
		}
		a := answer{fmt.Sprint(j.ID, " ", j.Seq, " ", j.State, " ", j.Attempt), promised(j, command, err)}
		var refused *commands.RefusedError
		if errors.As(err, &refused) {
			return answer{refused.Why, a.facts}, nil
		}
		return a, err
	}
}

func (c *caller) job(name string) (j projection.Job, err error) {
	err = read(c.store, func(tx *ledger.Tx) (err error) {
		j, _, err = projection.Get(context.Background(), tx, event.JobID(jobID(name)))
		return err
	})
	return j, err
}

// claim claims jobs; if finish names a job, it ends that job in the same transaction. When a claim is
// repeated, claim first looks for jobs that an earlier attempt was given without an answer.
func claim(n int, finish string) func(*caller) (answer, error) {
	return func(c *caller) (a answer, err error) {
		var steps []commands.Op
		if j, ok := c.held[finish]; ok {
			steps = append(steps, commands.Op{Job: j, Command: commands.Succeed{Token: j.Token}})
		}
		claimed, err := c.unaware()
		request := commands.ClaimRequest{Queues: []string{"q"}, Worker: me, Limit: n}
		var outcomes []commands.Result
		switch {
		case err != nil:
		case len(claimed) == 0:
			outcomes, claimed, err = c.queue.ApplyAndClaim(context.Background(), self, steps, request)
		case len(steps) > 0:
			outcomes, err = c.queue.ApplyBatch(context.Background(), self, steps)
		}
		if err != nil {
			return a, err
		}
		for _, o := range outcomes {
			if o.Err != nil {
				return a, o.Err
			}
			claimed = append(claimed, o.Job)
		}
		slices.SortFunc(claimed, func(a, b projection.Job) int {
			return strings.Compare(string(a.ID),
				string(b.ID))
		})
		for _, j := range claimed {
			id, _ := ulid.ParseStrict(string(j.ID))
			c.held[string(id[15])] = j
			a.text += fmt.Sprint(j.ID, " ", j.Seq, " ", j.State, " ", j.Attempt, "; ")
			a.facts = append(a.facts, jobFact(j.ID, j.Seq))
		}
		return a, nil
	}
}

// unaware returns the jobs that this worker has according to the ledger, and that no answer has named.
func (c *caller) unaware() (claimed []projection.Job, err error) {
	if !c.again {
		return nil, nil
	}
	err = read(c.store, func(tx *ledger.Tx) error {
		held, err := projection.Held(context.Background(), tx, me)
		for _, j := range held {
			if !slices.ContainsFunc(slices.Collect(maps.Values(c.held)),
				func(known projection.Job) bool { return known.Token == j.Token }) {
				claimed = append(claimed, j)
			}
		}
		return err
	})
	return claimed, err
}

// beat is the one command whose repetition has no first answer: it only reports again that the owner is
// alive.
func beat(name string) func(*caller) (answer, error) {
	return func(c *caller) (answer, error) {
		j := c.held[name]
		if c.again {
			if now, err := c.job(name); err != nil || now.State == event.Running {
				return answer{fmt.Sprint(now.Seq, now.State), []fact{jobFact(now.ID, now.Seq)}}, err
			}
		}
		half := 0.5
		outcomes, err := c.queue.ApplyBatch(context.Background(), self,
			[]commands.Op{{Job: j, Command: commands.Heartbeat{Token: j.Token, Progress: &half,
				Lease: 3 * time.Hour}}})
		if err != nil {
			return answer{}, err
		}
		j = outcomes[0].Job
		return answer{fmt.Sprint(j.Seq, j.State), []fact{jobFact(j.ID, j.Seq)}}, outcomes[0].Err
	}
}

func pause(paused bool, reason string) func(*caller) (answer, error) {
	return func(c *caller) (answer, error) {
		set := c.queue.Resume
		if paused {
			set = c.queue.Pause
		}
		_, err := set(context.Background(), self, "q", reason)
		return answer{reason, []fact{queueFact("q", reason)}}, err
	}
}

func sweep(names ...string) func(*caller) (answer, error) {
	return func(c *caller) (a answer, err error) {
		none := time.Duration(0)
		s := commands.Sweeper{Service: c.queue, Actor: self, Grace: &none, Pause: time.Microsecond}
		if _, err := s.Sweep(context.Background()); err != nil {
			return a, err
		}
		for _, name := range names {
			j, err := c.job(name)
			if err != nil {
				return a, err
			}
			a.text += fmt.Sprint(j.ID, " ", j.Seq, " ", j.State, "; ")
			a.facts = append(a.facts, jobFact(j.ID, j.Seq))
		}
		return a, nil
	}
}

func succeed(result string) func(token string) commands.Command {
	return func(token string) commands.Command {
		return commands.Succeed{Token: token, Result: []byte(result)}
	}
}

func cmd(c commands.Command) func(string) commands.Command {
	return func(string) commands.Command { return c }
}

var large = bytes.Repeat([]byte("page after page. "), 1500)

var script = []step{
	{"open", reopen, true},
	{"enqueue a", enqueue(commands.Enqueue{ID: jobID("a"), Queue: "q", Payload: []byte("a"),
		Tags: map[string]string{"customer": "17"}}), false},
	{"enqueue b and c", enqueue(commands.Enqueue{ID: jobID("b"), Queue: "q", Key: "kb"},
		commands.Enqueue{ID: jobID("c"), Queue: "q", Key: "kc"}), false},
	{"enqueue d, which is large", enqueue(commands.Enqueue{ID: jobID("d"), Queue: "q", Payload: large,
		Priority: -1}), false},
	{"enqueue b's key", enqueue(commands.Enqueue{Queue: "q", Key: "kb"}), false},
	{"claim a and b", claim(2, ""), false},
	{"heartbeat a", beat("a"), false},
	{"succeed a", do("a", succeed("done")), false},
	{"succeed a once more", do("a", succeed("done")), false},
	{"fail b", do("b", func(token string) commands.Command {
		return commands.Fail{Token: token, Code: "no_luck", RetryIn: new(time.Duration)}
	}), false},
	{"pause", pause(true, "maintenance"), false},
	{"resume", pause(false, "done"), false},
	{"claim b and c", claim(2, ""), false},
	{"release b", do("b", func(token string) commands.Command {
		return commands.Release{Token: token,
			Reason: "busy"}
	}), false},
	{"cancel c", do("c", cmd(commands.Cancel{Reason: "wrong"})), false},
	{"succeed c, which was cancelled", do("c", succeed("late")), false},
	{"claim b and d", claim(2, ""), false},
	{"sweep", sweep("b", "d"), true},
	{"succeed b, whose lease is lost", do("b", succeed("late")), false},
	{"erase a", do("a", cmd(commands.Erase{Reason: "asked for"})), false},
	{"retry c", do("c", cmd(commands.Retry{Reason: "asked for"})), false},
	{"close", func(c *caller) (answer, error) { return answer{}, c.close() }, true},
	{"open again", reopen, true},
	{"claim b", claim(1, ""), false},
	{"succeed b and claim c", claim(1, "b"), false},
	{"checkpoint", func(c *caller) (answer, error) {
		_, err := c.store.Checkpoint(context.Background())
		return answer{}, err
	}, true},
	{"succeed c", do("c", succeed(string(large))), false},
	{"enqueue e", enqueue(commands.Enqueue{ID: jobID("e"), Queue: "q"}), false},
	{"close again", func(c *caller) (answer, error) { return answer{}, c.close() }, true},
	{"open once more", reopen, true},
	{"enqueue f", enqueue(commands.Enqueue{ID: jobID("f"), Queue: "q"}), false},
}

// summary returns the result of the script: every answer, and every event with its tokens numbered.
func (c *caller) summary() (string, error) {
	var b strings.Builder
	for i, a := range c.answers {
		fmt.Fprintf(&b, "%s: %s\n", script[i].name, a)
	}
	err := read(c.store, func(tx *ledger.Tx) error {
		if err := verify(tx); err != nil {
			return err
		}
		tokens := make(map[string]string)
		return eachEvent(tx, func(e event.Event, line string) error {
			if e.Token != "" {
				if tokens[e.Token] == "" {
					tokens[e.Token] = fmt.Sprint("token ", len(tokens)+1)
				}
				line = strings.ReplaceAll(line, e.Token, tokens[e.Token])
			}
			b.WriteString(line + "\n")
			return nil
		})
	})
	return b.String(), err
}
