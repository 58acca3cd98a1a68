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

// Listen implements engine.Engine.
func (f *Engine) Listen(ctx context.Context, wake func(engine.Topic)) {
	version := f.version.read(ctx, f.path)
	bell, subscribed := doorbell.Watch(f.path), time.Now()
	defer func() { bell.Close() }()
	wake(engine.AnyTopic) // for commits before the subscription
	tick := time.NewTimer(pollInterval(bell))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-bell.Events:
			wake(doorbell.TopicOf(e.Name))
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				bell.Close()
			}
		case <-bell.Errors: // more events than the kernel keeps, for example: one of them is enough
			wake(engine.AnyTopic)
			bell.Close()
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

// versionReader reads SQLite's data version on a connection of its own, because the number is relative to a
// connection.
type versionReader struct{ session *engine.Session }

// read returns a number that changes when another connection has committed. If the version cannot be read,
// the number changes each time, so that the listener wakes its watchers.
func (r *versionReader) read(ctx context.Context, path string) int64 {
	if r.session == nil {
		var err error
		if r.session, err = connect(ctx, readerURL(path)); err != nil {
			r.session = nil
			return time.Now().UnixNano()
		}
	}
	version, err := r.session.Int(context.Background(), `PRAGMA data_version`)
	if err != nil {
		return time.Now().UnixNano()
	}
	return version
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
