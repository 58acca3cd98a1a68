package jobledgertest

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// Ledger is a Service on a ledger of one test.
type Ledger struct {
	*commands.Service
	*Clock

	t testing.TB
}

// New returns a new ledger in a temporary folder, as an SQLite file whose commits are not synced.
func New(t testing.TB) *Ledger {
	t.Helper()
	return Open(t, "sqlite:"+filepath.Join(t.TempDir(), "jobs.db")+"?sync=normal")
}

// Open is New for a ledger at an address that [ledger.Open] takes, such as that of a PostgreSQL database
// which the test has made.
func Open(t testing.TB, dsn string) *Ledger {
	t.Helper()
	store, err := ledger.Open(t.Context(), dsn)
	if err != nil {
		t.Fatalf("open the ledger: %v", err)
	}
	l := &Ledger{Service: &commands.Service{Store: store}, Clock: &Clock{now: Epoch}, t: t}
	store.Now = l.Now
	var drawn atomic.Uint64
	l.NewID = func() string {
		var id ulid.ULID
		_ = id.SetTime(ulid.Timestamp(Epoch)) // fails in the year 10889
		binary.BigEndian.PutUint64(id[8:], drawn.Add(1))
		return id.String()
	}
	l.NewSalt = func(salts []byte) {
		for i := range salts {
			salts[i] = byte(i)
		}
	}
	t.Cleanup(func() {
		l.verify()
		if err := store.Close(); err != nil {
			t.Errorf("close the ledger: %v", err)
		}
	})
	return l
}

// verify checks the whole ledger.
func (l *Ledger) verify() {
	l.t.Helper()
	ctx := context.Background() // that of the test has ended
	err := l.Store.Read(ctx, func(tx *ledger.Tx) error {
		found, err := audit.Verify(ctx, tx, nil)
		for _, f := range found.Findings {
			l.t.Errorf("verify: %+v", f)
		}
		return err
	})
	if err != nil {
		l.t.Errorf("verify: %v", err)
	}
}

// Add enqueues a job; without a Queue, into the queue "test".
func (l *Ledger) Add(e commands.Enqueue) projection.Job {
	l.t.Helper()
	if e.Queue == "" {
		e.Queue = "test"
	}
	jobs, err := l.Enqueue(l.t.Context(), "test", e)
	if err != nil {
		l.t.Fatalf("enqueue: %v", err)
	}
	return jobs[0].Job
}
