package postgres

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger/internal/engine"
)

// Notifications. A NOTIFY takes a lock of the whole server at its commit, which would slow down the commits
// of jobs. So it has a transaction of its own, sent right after the commit that it reports; or a little
// later, on another connection, if one was sent just before. Only speed depends on it: listeners also poll
// the tail, and do so more often where LISTEN is not available.

const (
	// NotifyInterval is the least time between two notifications of one process.
	NotifyInterval    = 5 * time.Millisecond
	pollWithListen    = time.Second
	pollWithoutListen = 100 * time.Millisecond
)

// notifyStatement need not be durable, and nothing should wait for its commit.
const notifyStatement = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`

// channel is the ledger's name for LISTEN.
func (p address) channel() string { return "jobledger_" + p.schema }

// notification returns the notification that is sent with a commit; "" for none. Without topics, there is
// nothing to notify of, or a watcher in this process waits: its transaction must not wait for that of the
// notification, so that the notifier sends it.
func (p *Engine) notification(topics engine.Topic) (statement string, args []any) {
	n := &p.notifier
	p.notified = 0
	if topics == 0 || !p.address.listen || n.pending.Load() != 0 || n.pause() > 0 {
		return "", nil
	}
	p.notified = topics
	n.sent()
	return notifyStatement, []any{p.address.channel(), payload(n.sender, topics)}
}

// Notify implements engine.Engine.
func (p *Engine) Notify(topics engine.Topic) {
	if topics &^= p.notified; topics != 0 && p.address.listen {
		p.notifier.send(topics)
	}
}

// payload is the text of a notification: the sender, and the topics unless a job became claimable and no
// more.
func payload(sender string, topics engine.Topic) string {
	if topics == engine.Claimable {
		return sender
	}
	return sender + " " + strconv.Itoa(int(topics))
}

// readPayload returns what payload was made of.
func readPayload(text string) (sender string, topics engine.Topic) {
	sender, number, ok := strings.Cut(text, " ")
	if !ok {
		return sender, engine.Claimable
	}
	n, err := strconv.ParseUint(number, 10, 8)
	if err != nil {
		return sender, engine.AnyTopic
	}
	return sender, engine.Topic(n)
}

// notifier sends the notifications that were not sent with their commits: on the connection that listens,
// where there is one, otherwise in a goroutine of its own, which runs from the first of them until close.
type notifier struct {
	address address
	sender  string                    // identifies this process, which does not wake itself
	pending atomic.Uint32             // the topics of which a notification will be sent
	last    atomic.Pointer[time.Time] // when the last notification was sent; nil: never

	mu        sync.Mutex
	interrupt context.CancelFunc // of the wait of the connection that listens; nil: none listens
	wanted    chan struct{}      // to the goroutine; has room for one; nil: there is no goroutine
	quit      context.CancelFunc
	ended     chan struct{}
}

func (n *notifier) sent() {
	now := time.Now()
	n.last.Store(&now)
}

// pause is how long no other notification may be sent.
func (n *notifier) pause() time.Duration {
	if last := n.last.Load(); last != nil {
		return NotifyInterval - time.Since(*last)
	}
	return 0
}

// send has a notification sent soon.
func (n *notifier) send(topics engine.Topic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending.Or(uint32(topics))
	if n.interrupt != nil {
		n.interrupt()
		return
	}
	n.sendFromGoroutine()
}

// sendFromGoroutine wakes the goroutine, which it starts first if necessary. The caller holds mu.
func (n *notifier) sendFromGoroutine() {
	if n.wanted == nil {
		ctx, cancel := context.WithCancel(context.Background())
		n.wanted, n.ended, n.quit = make(chan struct{}, 1), make(chan struct{}), cancel
		go n.run(ctx)
	}
	select {
	case n.wanted <- struct{}{}:
	default:
	}
}

// listens says how to interrupt the connection that listens, so that it sends what is pending; nil: none
// listens any more.
func (n *notifier) listens(interrupt context.CancelFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.interrupt = interrupt
	if interrupt == nil && n.pending.Load() != 0 {
		n.sendFromGoroutine()
	}
}

// sendOn sends what is pending.
func (n *notifier) sendOn(ctx context.Context, conn *pgx.Conn) error {
	n.sent()
	topics := engine.Topic(n.pending.Swap(0))
	if topics == 0 {
		return nil
	}
	_, err := conn.Exec(ctx, notifyStatement, n.address.channel(), payload(n.sender, topics))
	return err
}

// idleNotifier is how long the goroutine keeps its connection for the next notification.
const idleNotifier = 10 * time.Second

func (n *notifier) run(ctx context.Context) {
	defer close(n.ended)
	var s *engine.Session
	hangUp := func() {
		if s != nil {
			_ = s.Close()
			s = nil
		}
	}
	defer hangUp()
	for {
		var tired <-chan time.Time
		if s != nil {
			tired = time.After(idleNotifier)
		}
		select {
		case <-ctx.Done():
			return
		case <-tired:
			hangUp()
			continue
		case <-n.wanted:
		}
		sleep(ctx, n.pause())
		if s == nil {
			if s, _ = n.address.connect(ctx, forReading); s == nil { // listeners find the commit by polling
				n.pending.Store(0)
				sleep(ctx, lastReconnect)
				continue
			}
		}
		if n.sendOn(ctx, connOf(s).conn) != nil {
			hangUp()
		}
	}
}

func (n *notifier) close() {
	n.mu.Lock()
	quit, ended := n.quit, n.ended
	n.mu.Unlock()
	if quit != nil {
		quit()
		<-ended
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Listen implements engine.Engine.
func (p *Engine) Listen(ctx context.Context, wake func(engine.Topic)) {
	for tail := int64(-1); ctx.Err() == nil; sleep(ctx, lastReconnect) {
		s, err := p.address.connect(ctx, forReading)
		if err != nil {
			continue
		}
		p.receive(ctx, s, wake, &tail)
		_ = s.Close()
	}
}

// receive calls wake as long as the connection lives. It polls the tail whenever no notification came for a
// while.
func (p *Engine) receive(ctx context.Context, s *engine.Session, wake func(engine.Topic), tail *int64) {
	conn := connOf(s).conn
	interval := pollWithoutListen
	if p.address.listen {
		if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{p.address.channel()}.Sanitize()); err == nil {
			interval = p.PollInterval
		}
	}
	defer p.notifier.listens(nil)
	for ctx.Err() == nil {
		at, err := connOf(s).head(ctx, &pgx.Batch{}, nil, 0, noResult)
		if err != nil {
			return
		}
		if at.Tail != *tail {
			*tail = at.Tail
			wake(engine.AnyTopic)
		}
		if interval == pollWithoutListen {
			sleep(ctx, interval)
			continue
		}
		for end := time.Now().Add(interval); ctx.Err() == nil && time.Now().Before(end); {
			if p.receiveOne(ctx, conn, time.Until(end), wake) != nil {
				return
			}
		}
	}
}

// receiveOne waits for a notification for so long, and calls wake with it. It sends what the notifier has
// pending first.
func (p *Engine) receiveOne(
	ctx context.Context, conn *pgx.Conn, wait time.Duration, wake func(engine.Topic),
) error {
	n := &p.notifier
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	n.listens(cancel) // from here on, send interrupts the wait
	if n.pending.Load() != 0 {
		pause := n.pause()
		if pause <= 0 {
			return n.sendOn(ctx, conn)
		}
		wait = min(wait, pause)
	}
	waiting, stop := context.WithTimeout(waiting, wait)
	defer stop()
	notification, err := conn.WaitForNotification(waiting)
	switch {
	case err == nil:
		if sender, topics := readPayload(notification.Payload); sender != n.sender {
			wake(topics)
		}
	case waiting.Err() == nil:
		return err
	}
	return nil
}
