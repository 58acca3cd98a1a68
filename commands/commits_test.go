package commands_test

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// verdict is what becomes of a COMMIT.
type verdict int

const (
	heard   verdict = iota // durable, and the caller is told so
	undone                 // an error, and nothing is there
	unheard                // an error, and everything is there
)

// commits judges the COMMITs of the ledger at one path, for every Store of this process that is opened after
// judgeCommits. Both ways to fail are SQLite's own: a commit hook turns a COMMIT into a ROLLBACK, and the error of a
// WAL hook is told although the commit has been done.
type commits struct {
	mu    sync.Mutex
	judge func() verdict // called for each COMMIT; nil: all are heard
	deaf  bool           // the commit under way will be unheard
	count int
}

// judges are those of this process, by path and by SQLite's handle of a connection.
var judges struct {
	sync.Mutex
	install sync.Once
	paths   map[string]*commits
	handles map[uintptr]*commits
}

// judgeCommits returns the judge of the ledger at path, which must be absolute. It lets everything pass until it is
// told otherwise.
func judgeCommits(path string) *commits {
	judges.install.Do(func() {
		judges.paths, judges.handles = make(map[string]*commits), make(map[uintptr]*commits)
		sqlite.RegisterConnectionHook(judgeConnection)
	})
	judges.Lock()
	defer judges.Unlock()
	if judges.paths[path] == nil {
		judges.paths[path] = new(commits)
	}
	return judges.paths[path]
}

// by sets the judge; nil: all commits are heard.
func (c *commits) by(judge func() verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judge, c.deaf = judge, false
}

// seen counts the COMMITs so far.
func (c *commits) seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// once lets the next commit be v and all later ones be heard.
func (c *commits) once(v verdict) {
	c.by(func() verdict {
		next := v
		v = heard
		return next
	})
}

func (c *commits) hear() { c.by(nil) }

func judgeConnection(conn sqlite.ExecQuerierContext, dsn string) error {
	u, err := url.Parse(dsn)
	if err != nil || u.Query().Get("mode") != "rw" {
		return nil // no ledger's writer
	}
	judges.Lock()
	defer judges.Unlock()
	c := judges.paths[u.Path]
	if c == nil {
		return nil
	}
	conn.(sqlite.HookRegisterer).RegisterCommitHook(c.beforeCommit)
	db := uintptr(reflect.ValueOf(conn).Elem().FieldByName("db").Uint()) // the driver has no WAL hooks of its own
	judges.handles[db] = c
	tls := libc.NewTLS()
	defer tls.Close()
	hook := afterCommit
	sqlite3.Xsqlite3_wal_hook(tls, db, *(*uintptr)(unsafe.Pointer(&hook)), db)
	return nil
}

func (c *commits) beforeCommit() int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	if c.judge == nil {
		return 0
	}
	v := c.judge()
	c.deaf = v == unheard
	if v == undone {
		return 1
	}
	return 0
}

// afterCommit is SQLite's WAL hook.
func afterCommit(_ *libc.TLS, _, db, _ uintptr, _ int32) int32 {
	judges.Lock()
	c := judges.handles[db]
	judges.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf {
		c.deaf = false
		return sqlite3.SQLITE_IOERR
	}
	return sqlite3.SQLITE_OK
}

// beforeWrite is a context that calls act when a Store is about to queue a write, with no lock held: others may act
// between what its caller has read and what it writes.
type beforeWrite struct {
	context.Context
	act func()
}

// Err is asked for by Store.Write first of all.
func (c beforeWrite) Err() error {
	pc := make([]uintptr, 1)
	runtime.Callers(2, pc)
	if frame, _ := runtime.CallersFrames(pc).Next(); strings.HasSuffix(frame.Function, "ledger.(*Store).Write") {
		c.act()
	}
	return c.Context.Err()
}

// TestOthersActBeforeAWrite shows that beforeWrite still finds its place in the program.
func TestOthersActBeforeAWrite(t *testing.T) {
	q := newQueue(t)
	q.many(1)
	q.now = q.now.Add(time.Hour)
	acted := 0
	w := commands.Sweeper{Service: q.Service, Actor: "sweeper:test", Grace: new(time.Duration)}
	r, err := w.Sweep(beforeWrite{t.Context(), func() { acted++ }})
	if err != nil || len(r.Reclaimed) != 1 || acted < 1 { // more than once where the sweep was late and looked again
		t.Errorf("%+v, %v, and others acted %d times, want 1 or more", r, err, acted)
	}
}

// newJudgedQueue is newQueue with a judge of its commits.
func newJudgedQueue(t *testing.T) (*queue, *commits) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	c := judgeCommits(path)
	q := &queue{t: t, now: ledgertest.Epoch}
	store := ledgertest.OpenAt(t, path)
	store.Now = func() time.Time { return q.now }
	q.Service = &commands.Service{Store: store}
	t.Cleanup(q.verify) // before the store closes
	return q, c
}

// TestAnUnknownCommitIsAnsweredWhenSentAgain also shows that both ways to fail are what they say.
func TestAnUnknownCommitIsAnsweredWhenSentAgain(t *testing.T) {
	for _, v := range []verdict{undone, unheard} {
		q, c := newJudgedQueue(t)
		c.once(v)
		job := commands.Enqueue{ID: id(1), Queue: "mail", Payload: []byte("p")}
		if _, err := q.Enqueue(t.Context(), "cli:test", job); !errors.Is(err, ledger.ErrUnknown) {
			t.Fatalf("enqueue: got %v, want ErrUnknown", err)
		}
		again, err := q.Enqueue(t.Context(), "cli:test", job)
		if err != nil || again[0].Existing != (v == unheard) {
			t.Fatalf("enqueue again: %+v, %v", again, err)
		}
		c.once(v)
		request := commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker("w")}
		mine, err := q.Claim(t.Context(), request)
		if v == undone {
			if !errors.Is(err, ledger.ErrUnknown) {
				t.Fatalf("claim: got %v, want ErrUnknown", err)
			}
			mine, err = q.Claim(t.Context(), request)
		}
		if err != nil || len(mine) != 1 || mine[0].Attempt != 1 || string(mine[0].Payload) != "p" {
			t.Fatalf("claim: got %+v, %v, want the job that was asked for", mine, err)
		}
		c.once(v)
		end := commands.Succeed{Token: mine[0].Token, Result: []byte("r")}
		if _, err := q.Apply(t.Context(), "worker:w", mine[0].ID, end); !errors.Is(err, ledger.ErrUnknown) {
			t.Fatalf("succeed: got %v, want ErrUnknown", err)
		}
		if got := q.tail() == 3; got != (v == unheard) {
			t.Errorf("durable in spite of the error: %t", got)
		}
		if got := q.do(mine[0], end); got.State != ledger.SucceededState || q.tail() != 3 {
			t.Errorf("succeed again: %+v, %d events", got, q.tail())
		}
	}
}
