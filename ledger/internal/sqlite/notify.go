package sqlite

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/sqlite/doorbell"
)

// A listener watches the doorbell. It also polls SQLite's data version, which costs next to nothing, and does
// so more often where the doorbell cannot be watched.

const watchRetry = 10 * time.Second // between two attempts to watch the doorbell

// How often a listener polls the data version, with a doorbell and without one. Variables for the tests.
var (
	PollWithDoorbell    = 250 * time.Millisecond
	PollWithoutDoorbell = 100 * time.Millisecond // a poll costs some 20 µs
)

// A program that writes into the inbox rings before its commit, since it does not hear of that. So a listener
// then looks often for a while.
const (
	inboxSoon  = 100 * time.Millisecond
	inboxPoll  = time.Millisecond
	inboxPause = 3 * time.Millisecond // after rows were seen, which a worker moves meanwhile
)

// Listen implements engine.Engine.
func (f *Engine) Listen(ctx context.Context, wake func(engine.Topic)) {
	version := f.version.read(ctx, f.path)
	bell, subscribed := doorbell.Watch(f.path), time.Now()
	defer func() { bell.Close() }()
	wake(engine.AnyTopic) // for commits before the subscription
	tick := time.NewTimer(pollInterval(bell))
	defer tick.Stop()
	look, until := time.NewTimer(time.Hour), time.Time{}
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-bell.Events:
			if topic := doorbell.TopicOf(e.Name); topic != engine.Inbox {
				wake(topic)
			} else {
				until = time.Now().Add(inboxSoon)
				look.Reset(0)
			}
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				bell.Close()
			}
		case <-bell.Errors: // more events than the kernel keeps, for example: one of them is enough
			wake(engine.AnyTopic)
			bell.Close()
		case <-look.C:
			pause := inboxPoll
			if f.version.inboxHasRows(ctx, f.path) {
				pause = inboxPause
				wake(engine.Claimable | engine.Inbox)
			}
			if time.Now().Before(until) {
				look.Reset(pause)
			}
		case <-tick.C:
			if v := f.version.read(ctx, f.path); v != version {
				version = v
				wake(engine.AnyTopic)
			}
			if bell.Events == nil && time.Since(subscribed) > watchRetry {
				bell, subscribed = doorbell.Watch(f.path), time.Now()
			}
			tick.Reset(pollInterval(bell))
		}
	}
}

// ExpectInbox rings the doorbell of the ledger at path for those who wait for rows of its inbox.
func ExpectInbox(path string) {
	var ringer doorbell.Ringer
	ringer.Ring(path, engine.Inbox)
	ringer.Close()
}

// versionReader reads SQLite's data version on a connection of its own, because the number is relative to a
// connection.
type versionReader struct{ session *engine.Session }

// read returns a number that changes when another connection has committed. If the version cannot be read,
// the number changes each time, so that the listener wakes its watchers.
func (r *versionReader) read(ctx context.Context, path string) int64 {
	version, err := r.int(ctx, path, `PRAGMA data_version`)
	if err != nil {
		return time.Now().UnixNano()
	}
	return version
}

// inboxHasRows reports whether the inbox has rows that were committed.
func (r *versionReader) inboxHasRows(ctx context.Context, path string) bool {
	n, err := r.int(ctx, path, `SELECT EXISTS (SELECT 1 FROM inbox)`)
	return err == nil && n == 1
}

func (r *versionReader) int(ctx context.Context, path, query string) (n int64, err error) {
	if r.session == nil {
		session, err := connect(ctx, readerURL(path))
		if err != nil {
			return 0, err
		}
		r.session = session
	}
	return r.session.Int(context.Background(), query)
}

func (r *versionReader) close() {
	if r.session != nil {
		_ = r.session.Close()
		r.session = nil
	}
}

// pollInterval is how long to rely on the doorbell alone.
func pollInterval(bell doorbell.Subscription) time.Duration {
	if bell.Events == nil {
		return PollWithoutDoorbell
	}
	return PollWithDoorbell
}
