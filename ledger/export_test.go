package ledger

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
)

// What the tests of this package need to make rare things happen on purpose. Call before the first use.

// SetLockWait sets how long a function waits for the write lock.
func (s *Store) SetLockWait(d time.Duration) { s.lockWait = d }

// SetGroupTime sets how long a transaction takes further functions.
func (s *Store) SetGroupTime(d time.Duration) { s.groupTime = d }

// Queued returns how many functions wait for a transaction.
func (s *Store) Queued() int { return len(s.requests) }

// FailCommits makes COMMIT fail while fail is true.
func (s *Store) FailCommits(fail *atomic.Bool) error {
	return s.engine.(*file).writer.connection.(*sqliteConnection).conn.Raw(func(conn any) error {
		conn.(sqlite.HookRegisterer).RegisterCommitHook(func() int32 {
			if fail.Load() {
				return 1
			}
			return 0
		})
		return nil
	})
}

// Encode returns b in its public form, or in its stored one with the digest that has a column of its own.
func Encode(b Body, w Worker, public bool) (data, digest []byte) {
	if public {
		return appendPublic(nil, b, w), nil
	}
	return encode(b)
}

// Decode reads what Encode wrote.
func Decode(k Kind, data, digest []byte, w *Worker) (Body, error) {
	return decode(k, string(data), digest, w)
}

// MaxClaims is how many jobs a read remembers.
const MaxClaims = maxClaims

// EventsKnowing is Tx.Events after a read that has come across as many other jobs as it remembers.
func (tx *Tx) EventsKnowing(ctx context.Context, others int) (list []Event, err error) {
	rows, err := tx.Query(ctx, `SELECT `+eventColumns+` FROM events e ORDER BY e.pos`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := make(claims)
	for i := range others {
		known[int64(-i-1)] = latestClaim{}
	}
	for rows.Next() {
		e, err := tx.scan(ctx, rows, known)
		if err != nil {
			return nil, err
		}
		if len(known) > max(others, maxClaims) {
			return nil, fmt.Errorf("%d jobs are remembered", len(known))
		}
		list = append(list, e)
	}
	return list, rows.Err()
}

// HoldTurn takes the turnstile's locks of the ledger at path until the process ends.
func HoldTurn(path string) bool {
	held := openTurn(path)
	heldTurns = append(heldTurns, held)
	return held != nil && waitLock(held.gate) && waitLock(held.lock)
}

var heldTurns []*turnFiles // or they would be closed as garbage

// ReadAhead makes a scan of more than n events read ahead, until the test ends.
func ReadAhead(n int64, cleanup func(func())) {
	before := scanAhead
	scanAhead = n
	cleanup(func() { scanAhead = before })
}

// StraightRows counts the events that are read past the driver.
func StraightRows(path string) (n int, err error) {
	s, err := openStraight(path, allEvents, 0, 1<<62)
	if err != nil {
		return 0, err
	}
	defer s.close()
	for {
		ok, err := s.next()
		if !ok || err != nil {
			return n, err
		}
		n++
	}
}

// SetFrozenWriter sets for how long stores that are opened from now on may hold the lock without a word.
func SetFrozenWriter(d time.Duration, cleanup func(func())) {
	before := frozenWriter
	frozenWriter = d
	cleanup(func() { frozenWriter = before })
}

// SetSilence sets how long the server of a connection that is opened from now on may be silent.
func SetSilence(d time.Duration, cleanup func(func())) {
	before := silence
	silence = d
	cleanup(func() { silence = before })
}

// SetVersionEvery sets how often the data version is looked at from now on, with a bell and without one.
func SetVersionEvery(d time.Duration, cleanup func(func())) {
	every, only := versionEvery, versionOnly
	versionEvery, versionOnly = d, d
	cleanup(func() { versionEvery, versionOnly = every, only })
}

// SetTailEvery sets how often the tail is looked at by those who listen from now on.
func SetTailEvery(d time.Duration, cleanup func(func())) {
	before := tailEvery
	tailEvery = d
	cleanup(func() { tailEvery = before })
}

// NotifyEvery is the pause between two notifications of one process.
const NotifyEvery = notifyEvery

// SetUpLate is what Open does with the ledger at path; only that meanwhile is called when SQLite has opened the file and
// not yet asked for a lock on it.
func SetUpLate(ctx context.Context, path string, meanwhile func()) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	w, err := connect(ctx, fileURL(path, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(0)"}}))
	if err != nil {
		return err
	}
	defer w.close()
	meanwhile()
	u, err := url.Parse(writerURL(path, "full"))
	if err != nil {
		return err
	}
	for _, pragma := range u.Query()["_pragma"] {
		if _, err := w.connection.(*sqliteConnection).conn.ExecContext(ctx, `PRAGMA `+pragma); err != nil {
			return err
		}
	}
	_, err = (&file{path: path, info: info, writer: w}).setUp(ctx)
	return err
}
