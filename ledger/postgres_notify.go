package ledger

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Waking up, with PostgreSQL. A NOTIFY takes a lock of the whole server at its commit, which would cost the commits of
// jobs their speed. So it has a transaction of its own, right behind the commit that it tells of; or some time later, on
// another connection, if one went out just before. As with files only speed rests on it: who listens also looks at the
// tail now and then, and always where LISTEN is not to be had.

const (
	notifyEvery = 5 * time.Millisecond // the pause between two notifications of one process
	tailOnly    = 100 * time.Millisecond
)

var tailEvery = time.Second // how often the tail is looked at by one who listens

// channel is the ledger's name for LISTEN.
func (p postgresPlace) channel() string { return "jobledger_" + p.schema }

// tells reports whether there may be other processes that listen.
func (p *postgres) tells() bool { return !p.store.Alone && p.place.listen }

// following returns the notification that goes with the commit of what the store has open; "" for none. Where somebody
// waits in this process too, the bell sends it: his transaction must not wait for the notification's.
func (p *postgres) following() (statement string, args []any) {
	p.told = p.store.announces && p.tells() && !p.store.watchers.any() && !p.bell.rings.Load() && p.bell.pause() <= 0
	if !p.told {
		return "", nil
	}
	p.bell.sends()
	return notify, []any{p.place.channel(), p.bell.tone}
}

// postgresBell sends the notifications that did not go with their commits. A goroutine does it, from the first ring to
// the close.
type postgresBell struct {
	place postgresPlace
	tone  string // of this process, which need not wake itself
	start sync.Once
	rung  chan struct{} // has room for one
	rings atomic.Bool   // one is on its way
	quit  context.CancelFunc
	ended chan struct{}
	last  atomic.Pointer[time.Time] // when a notification was sent, with a commit or by itself; nil: never
}

func (b *postgresBell) sends() {
	now := time.Now()
	b.last.Store(&now)
}

// pause is how long there must be no other notification.
func (b *postgresBell) pause() time.Duration {
	if last := b.last.Load(); last != nil {
		return notifyEvery - time.Since(*last)
	}
	return 0
}

func (p *postgres) ring() {
	b := &p.bell
	if p.told || !p.tells() {
		return
	}
	b.start.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		b.rung, b.ended, b.quit = make(chan struct{}, 1), make(chan struct{}), cancel
		go b.send(ctx)
	})
	b.rings.Store(true)
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

func (b *postgresBell) send(ctx context.Context) {
	defer close(b.ended)
	var s *session
	defer func() {
		if s != nil {
			_ = s.close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.rung:
		}
		pauseFor(ctx, b.pause())
		if s == nil {
			if s, _ = b.place.connect(ctx, forReading); s == nil { // those who wait look by themselves
				b.rings.Store(false)
				pauseFor(ctx, lastReconnect)
				continue
			}
		}
		b.sends()
		b.rings.Store(false)
		if _, err := s.server().conn.Exec(ctx, notify, b.place.channel(), b.tone); err != nil {
			_ = s.close()
			s = nil
		}
	}
}

// notify need not be durable, and nobody should wait for that.
const notify = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`

func (b *postgresBell) close() {
	if b.quit != nil {
		b.quit()
		<-b.ended
	}
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (p *postgres) listen(ctx context.Context, wake func()) {
	for tail := int64(-1); ctx.Err() == nil; pauseFor(ctx, lastReconnect) {
		s, err := p.place.connect(ctx, forReading)
		if err != nil {
			continue
		}
		p.hear(ctx, s, wake, &tail)
		_ = s.close()
	}
}

// hear wakes for as long as the connection lasts. It looks at the tail whenever nothing has been heard for a while.
func (p *postgres) hear(ctx context.Context, s *session, wake func(), tail *int64) {
	conn := s.server().conn
	patience := tailOnly
	if p.place.listen {
		if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{p.place.channel()}.Sanitize()); err == nil {
			patience = tailEvery
		}
	}
	for ctx.Err() == nil {
		pos, _, err := s.readTail()
		if err != nil {
			return
		}
		if pos != *tail {
			*tail = pos
			wake()
		}
		if patience == tailOnly {
			pauseFor(ctx, patience)
			continue
		}
		for heard := true; heard && ctx.Err() == nil; {
			waiting, cancel := context.WithTimeout(ctx, patience)
			heardOf, err := conn.WaitForNotification(waiting)
			timedOut := waiting.Err() != nil
			cancel()
			switch {
			case err == nil && heardOf.Payload != p.bell.tone:
				wake()
			case err == nil:
			case timedOut:
				heard = false
			default:
				return
			}
		}
	}
}
