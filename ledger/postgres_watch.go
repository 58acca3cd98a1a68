package ledger

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Waking up, with PostgreSQL. A NOTIFY takes a lock of the whole server at its commit, which would cost the commits of
// jobs their speed. So it has a connection and a transaction of its own, some time after the commit it tells of if another
// went out just before. As with files only speed rests on it: who listens also looks at the tail now and then, and
// always where LISTEN is not to be had.

const (
	notifyEvery = 5 * time.Millisecond // the pause between two notifications of one process
	tailOnly    = 100 * time.Millisecond
)

var tailEvery = time.Second // how often the tail is looked at by one who listens

// channel is the ledger's name for LISTEN.
func (p postgresPlace) channel() string { return "jobledger_" + p.schema }

// postgresBell sends notifications. A goroutine does it, from the first ring to the close.
type postgresBell struct {
	place postgresPlace
	tone  string // of this process, which need not wake itself
	start sync.Once
	rung  chan struct{} // has room for one
	quit  context.CancelFunc
	ended chan struct{}
}

func (p *postgres) ring() {
	b := &p.bell
	if p.store.Alone || !p.place.listen {
		return
	}
	b.start.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		b.rung, b.ended, b.quit = make(chan struct{}, 1), make(chan struct{}), cancel
		go b.send(ctx)
	})
	select {
	case b.rung <- struct{}{}:
	default: // one is on its way
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
		if s == nil {
			if s, _ = b.place.connect(ctx, forReading); s == nil { // those who wait look by themselves
				pauseFor(ctx, lastReconnect)
				continue
			}
		}
		if _, err := s.server().conn.Exec(ctx, notify, b.place.channel(), b.tone); err != nil {
			_ = s.close()
			s = nil
		}
		pauseFor(ctx, notifyEvery)
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
