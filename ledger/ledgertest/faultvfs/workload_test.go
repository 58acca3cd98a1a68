//go:build unix

package faultvfs_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/ledgertest/faultvfs"
	"jobledger/projection"
)

// The workload: clients send random commands of every kind concurrently, and keep the answers.

// crowd is a workload that can be recorded.
type crowd struct {
	dsn      string // with %s for the file
	stores   int    // the number of stores, each as of another process
	clients  int
	commands int  // per client
	large    int  // bytes of the payload of every fourth job without a key
	huge     int  // jobs of the largest size that the first client enqueues first; four fill a -wal file
	quiet    bool // nothing checkpoints until the end

	path    string
	ticks   atomic.Int64 // time of the clock that all stores share
	mu      sync.Mutex
	jobs    []event.JobID
	ids     *rand.Rand
	members []*member
}

// member is one client of a crowd and the jobs it knows.
type member struct {
	client
	*crowd
	worker  event.Worker
	dice    *rand.Rand
	queue   *commands.Service
	held    []projection.Job
	zombies []projection.Job
	reasons int
}

// recording is a workload as the disk recorded it.
type recording struct {
	*faultvfs.Record
	history *history
	dsn     string
	made    int    // the time of the disk when the ledger was first open
	closing [2]int // begin and end of the first close
}

// record runs the crowd on a new ledger, which is closed and reopened half-way.
func (c *crowd) record(t *testing.T, seed uint64) *recording {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	disk := faultvfs.Mount(t, dir, nil)
	c.path, c.ids = filepath.Join(dir, "jobs.db"), rand.New(rand.NewPCG(seed, 0))
	c.members, c.jobs = nil, nil
	var clients []*client
	for i := range c.clients {
		name := fmt.Sprint("w", i)
		m := &member{client: client{disk: disk, actor: "worker:" + name}, crowd: c,
			dice:   rand.New(rand.NewPCG(seed, uint64(i+1))),
			worker: event.Worker{Name: name, Boot: "boot-" + name}}
		c.members, clients = append(c.members, m), append(clients, &m.client)
	}
	r := &recording{dsn: c.dsn}
	for round := range 2 {
		stores := c.open(t)
		if round == 0 {
			r.made = disk.Now()
		}
		if err := c.work(stores); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var err error
		if r.history, err = newHistory(stores[0], clients, 0); round == 1 && err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := read(stores[0], verify); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		began := disk.Now()
		for _, store := range stores {
			if err := store.Close(); err != nil {
				t.Fatalf("seed %d: close: %v", seed, err)
			}
		}
		if round == 0 {
			r.closing = [2]int{began, disk.Now()}
		}
	}
	r.Record = disk.Record()
	return r
}

func (c *crowd) open(t *testing.T) (stores []*ledger.Store) {
	t.Helper()
	for range c.stores {
		store, err := ledger.Open(t.Context(), fmt.Sprintf(c.dsn, c.path))
		if err != nil {
			t.Fatal(err)
		}
		store.Now = func() time.Time {
			return ledgertest.Epoch.Add(
				time.Duration(c.ticks.Add(1)) * 700 * time.Millisecond)
		}
		stores = append(stores, store)
	}
	return stores
}

// work makes every client send half of its commands, while another goroutine runs checkpoints.
func (c *crowd) work(stores []*ledger.Store) error {
	var workers []func() error
	var busy sync.WaitGroup
	for i, m := range c.members {
		m.queue = &commands.Service{Store: stores[i%len(stores)], NewID: c.newID}
		busy.Add(1)
		workers = append(workers, func() error {
			defer busy.Done()
			for range c.commands / 2 {
				if err := m.act(); err != nil {
					return fmt.Errorf("%s: %w", m.actor, err)
				}
			}
			return nil
		})
	}
	for len(c.members) > 0 && len(c.members[0].client.commands) < c.huge {
		if err := c.members[0].enqueueJobs(commands.Enqueue{Queue: "q0",
			Payload: make([]byte, commands.MaxPayload)}); err != nil {
			return err
		}
	}
	done := make(chan struct{})
	go func() {
		busy.Wait()
		close(done)
	}()
	if !c.quiet {
		workers = append(workers, func() error { return c.checkpoint(done) })
	}
	return inParallel(workers...)
}

// checkpoint runs a checkpoint, as a user's shell can. A writer or a reader may prevent it from completing.
func (c *crowd) checkpoint(done <-chan struct{}) error {
	db, err := sql.Open("sqlite", c.path)
	if err != nil {
		return err
	}
	defer db.Close()
	for i := 0; ; i++ {
		select {
		case <-done:
			return nil
		case <-time.After(time.Duration(5+i) * time.Millisecond):
			_, _ = db.Exec([]string{`PRAGMA wal_checkpoint(PASSIVE)`, `PRAGMA wal_checkpoint(RESTART)`,
				`PRAGMA wal_checkpoint(TRUNCATE)`}[i%3])
		}
	}
}

func (c *crowd) newID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := ulid.ULID{0: 1, 14: byte(c.ids.Uint32()), 15: byte(c.ids.Uint32())}
	for i := range 8 {
		id[6+i] = byte(c.ids.Uint32())
	}
	return id.String()
}

// anyJob returns a job that some client has been given.
func (m *member) anyJob() event.JobID {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.jobs) == 0 {
		return event.JobID(ulid.ULID{}.String())
	}
	return m.jobs[m.dice.IntN(len(m.jobs))]
}

func (m *member) reason() string {
	m.reasons++
	return fmt.Sprint(m.actor, " ", m.reasons)
}

// act sends one command.
func (m *member) act() error {
	switch n := m.dice.IntN(100); {
	case n < 30:
		return m.enqueue()
	case n < 60:
		return m.endAndClaim()
	case n < 66:
		return m.beat()
	case n < 74:
		return m.finish()
	case n < 79:
		return m.do(m.anyJob(), commands.Cancel{Reason: m.reason()})
	case n < 83:
		return m.do(m.anyJob(), commands.Retry{Reason: m.reason()})
	case n < 86:
		priority := m.dice.IntN(5)
		return m.do(m.anyJob(), commands.Reschedule{Priority: &priority})
	case n < 90:
		return m.do(m.anyJob(), commands.Erase{Reason: m.reason()})
	case n < 92:
		return m.pause()
	case n < 97:
		return m.sweep()
	case n < 99 && len(m.zombies) > 0:
		j := m.zombies[0]
		m.zombies = m.zombies[1:]
		return m.do(j.ID, commands.Succeed{Token: j.Token, Result: []byte("late")})
	}
	return m.restart()
}

func (m *member) enqueue() error {
	jobs := make([]commands.Enqueue, 1+2*(m.dice.IntN(6)/5))
	for i := range jobs {
		payload := fmt.Append(nil, m.reason())
		if m.dice.IntN(4) == 0 {
			payload = bytes.Repeat(payload, 1+m.large/len(payload))
		}
		jobs[i] = commands.Enqueue{Queue: fmt.Sprint("q", m.dice.IntN(2)), Payload: payload,
			Priority: m.dice.IntN(2)}
		if m.dice.IntN(3) == 0 { // another client may hold it
			jobs[i].Key, jobs[i].Payload = fmt.Sprint("k", m.dice.IntN(40)), []byte("the same")
		}
	}
	return m.enqueueJobs(jobs...)
}

func (m *member) enqueueJobs(jobs ...commands.Enqueue) error {
	return m.ask(false, func() (facts []fact, err error) {
		answers, err := m.queue.Enqueue(context.Background(), m.actor, jobs...)
		for _, a := range answers {
			facts = append(facts, jobFact(a.ID, 1))
			m.mu.Lock()
			m.jobs = append(m.jobs, a.ID)
			m.mu.Unlock()
		}
		return facts, unlessVerdict(err)
	})
}

// endAndClaim ends some of the jobs that the client holds and claims more.
func (m *member) endAndClaim() error {
	var ops []commands.Op
	var kept []projection.Job
	for _, j := range m.held {
		switch m.dice.IntN(6) {
		case 0:
			kept = append(kept, j)
		case 1:
			m.zombies = append(m.zombies, j) // the client forgets it
		default:
			ops = append(ops, commands.Op{Job: j, Command: m.ending(j)})
		}
	}
	m.held = kept
	request := commands.ClaimRequest{Queues: []string{"q0", "q1"}, Worker: m.worker, Lease: 20 * time.Second,
		Limit: 1 + m.dice.IntN(3)}
	return m.ask(false, func() (facts []fact, err error) {
		outcomes, claimed, err := m.queue.ApplyAndClaim(context.Background(), m.actor, ops, request)
		for i, o := range outcomes {
			facts = append(facts, promised(o.Job, ops[i].Command, o.Err)...)
		}
		for _, j := range claimed {
			facts = append(facts, jobFact(j.ID, j.Seq))
			m.held = append(m.held, j)
		}
		return facts, err
	})
}

func (m *member) ending(j projection.Job) commands.Command {
	switch m.dice.IntN(5) {
	case 0:
		none := time.Duration(0)
		return commands.Fail{Token: j.Token, Code: "no_luck", RetryIn: &none}
	case 1:
		return commands.Release{Token: j.Token, Reason: m.reason()}
	case 2:
		return commands.Succeed{Token: j.Token}
	}
	return commands.Succeed{Token: j.Token, Result: []byte(m.reason())}
}

func (m *member) beat() error {
	var ops []commands.Op
	for _, j := range m.held {
		ops = append(ops, commands.Op{Job: j, Command: commands.Heartbeat{Token: j.Token,
			Lease: 20 * time.Second}})
	}
	return m.ask(false, func() (facts []fact, err error) {
		outcomes, err := m.queue.ApplyBatch(context.Background(), m.actor, ops)
		m.held = nil
		for i, o := range outcomes {
			facts = append(facts, promised(o.Job, ops[i].Command, o.Err)...)
			if o.Err == nil {
				m.held = append(m.held, o.Job)
			}
		}
		return facts, err
	})
}

// finish ends one job, or repeats an earlier end.
func (m *member) finish() error {
	if len(m.held) == 0 {
		return m.endAndClaim()
	}
	j := m.held[0]
	if m.dice.IntN(4) > 0 {
		m.held = m.held[1:]
	}
	return m.do(j.ID, commands.Succeed{Token: j.Token, Result: []byte("done")})
}

func (m *member) do(id event.JobID, c commands.Command) error {
	return m.ask(false, func() ([]fact, error) {
		j, err := m.queue.Apply(context.Background(), m.actor, id, c)
		return promised(j, c, err), unlessVerdict(err)
	})
}

func (m *member) pause() error {
	queue, reason := fmt.Sprint("q", m.dice.IntN(2)), m.reason()
	return m.ask(false, func() (facts []fact, err error) {
		set := m.queue.Resume
		if m.dice.IntN(4) == 0 {
			set = m.queue.Pause
		}
		changed, err := set(context.Background(), m.actor, queue, reason)
		if changed {
			facts = append(facts, queueFact(queue, reason))
		}
		return facts, err
	})
}

func (m *member) sweep() error {
	none := time.Duration(0)
	s := commands.Sweeper{Service: m.queue, Actor: m.actor, Grace: &none, Pause: time.Microsecond}
	return m.ask(true, func() (facts []fact, err error) {
		report, err := s.Sweep(context.Background())
		for _, j := range report.Reclaimed {
			facts = append(facts, jobFact(j.ID, j.Seq))
		}
		return facts, err
	})
}

// restart simulates a new process of the same name: it knows nothing about the claims of the one before.
func (m *member) restart() error {
	m.zombies, m.held = append(m.zombies, m.held...), nil
	m.worker.Boot = "boot-" + m.reason()
	return m.ask(false, func() ([]fact, error) {
		return []fact{workerFact(event.KindWorkerStarted, m.worker.Boot)},
			m.queue.WorkerStarted(context.Background(), m.worker, []string{"q0", "q1"}, nil)
	})
}

// unlessVerdict returns err unless it is a refusal, which is a valid answer.
func unlessVerdict(err error) error {
	for _, verdict := range []error{commands.ErrConflict, commands.ErrLeaseLost, commands.ErrCancelled,
		commands.ErrNoJob} {
		if errors.Is(err, verdict) {
			return nil
		}
	}
	return err
}
