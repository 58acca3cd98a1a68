package ledger

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/internal/postgres"
	"jobledger/ledger/internal/postgres/notify"
	"jobledger/ledger/internal/row"
	"jobledger/ledger/internal/sqlite"
)

// The functions below let the tests of this package provoke rare events. Call them before the first use.

// The tests open ledgers with SQLite too, perhaps before the first Open.
func init() { sqlite.LockByDescription() }

// SetLockWait sets how long Write waits for the write lock.
func (s *Store) SetLockWait(d time.Duration) { s.lockWait = d }

// SetGroupTime sets for how long a transaction accepts further functions.
func (s *Store) SetGroupTime(d time.Duration) { s.groupTime = d }

// Sync returns the durability of a commit: "full" or "normal".
func (s *Store) Sync() string { return s.info.Sync }

// Queued returns how many functions are waiting for a transaction.
func (s *Store) Queued() int { return len(s.requests) }

// FailCommits makes COMMIT fail as long as fail is true.
func (s *Store) FailCommits(fail *atomic.Bool) error {
	return s.engine.(*sqlite.Engine).OnCommit(func() int32 {
		if fail.Load() {
			return 1
		}
		return 0
	})
}

// MaxClaims is how many jobs a read keeps the latest claim of.
const MaxClaims = row.MaxClaims

// EventsKnowing is Tx.Events after a read that has already met this many other jobs.
func (tx *Tx) EventsKnowing(ctx context.Context, others int) (list []event.Event, err error) {
	rows, err := tx.Query(ctx, `SELECT `+row.Columns+` FROM events e ORDER BY e.pos`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := make(row.Latest)
	for i := range others {
		known[int64(-i-1)] = row.LatestClaim{}
	}
	for rows.Next() {
		e, err := tx.scan(ctx, rows, known)
		if err != nil {
			return nil, err
		}
		if len(known) > max(others, MaxClaims) {
			return nil, fmt.Errorf("%d jobs are remembered", len(known))
		}
		list = append(list, e)
	}
	return list, rows.Err()
}

// HoldWriteQueue holds the lock of the write queue of the ledger at path until the process ends.
func HoldWriteQueue(path string) bool { return sqlite.HoldWriteQueue(path) }

// ReadAhead makes scans of more than n events read ahead until the test ends.
func ReadAhead(n int64, cleanup func(func())) {
	before := scanAhead
	scanAhead = n
	cleanup(func() { scanAhead = before })
}

// SetPollIntervals sets how often the data version is polled from now on, with a doorbell and without one.
func SetPollIntervals(d time.Duration, cleanup func(func())) {
	every, only := sqlite.PollWithDoorbell, sqlite.PollWithoutDoorbell
	sqlite.PollWithDoorbell, sqlite.PollWithoutDoorbell = d, d
	cleanup(func() { sqlite.PollWithDoorbell, sqlite.PollWithoutDoorbell = every, only })
}

// SetServerPollInterval sets how often a watcher that listens polls the tail. Call it before Watch.
func (s *Store) SetServerPollInterval(d time.Duration) { s.engine.(*postgres.Engine).PollInterval = d }

// SetSessionWait sets how long a connection waits for its session until the test ends.
func SetSessionWait(d time.Duration, cleanup func(func())) {
	before := postgres.SessionWait
	postgres.SessionWait = d
	cleanup(func() { postgres.SessionWait = before })
}

// NotifyInterval is the pause between two notifications of one process.
const NotifyInterval = notify.Interval

// SetUpLate runs what Open does with the ledger at path. It calls meanwhile after SQLite has opened the file
// and before the first lock on it.
func SetUpLate(ctx context.Context, path string, meanwhile func()) error {
	return sqlite.SetUpLate(ctx, path, meanwhile)
}

// DivideEveryCheck makes CheckStructure check every ledger in steps, as it does long ones, until restore is
// called.
func DivideEveryCheck() (restore func()) {
	before := longLedger
	longLedger = 0
	return func() { longLedger = before }
}

// SetServerAnswerTime sets how long a server may take to answer. Call it before the first Write.
func (s *Store) SetServerAnswerTime(d time.Duration) { s.engine.(*postgres.Engine).AnswerTime = d }
