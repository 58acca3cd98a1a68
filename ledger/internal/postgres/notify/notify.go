package notify

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger/internal/engine"
)

const (
	// Interval is the least time between two notifications of one process.
	Interval = 5 * time.Millisecond
	// PollWithListen is how often a listener polls the tail by default.
	PollWithListen    = time.Second
	pollWithoutListen = 100 * time.Millisecond
	reconnect         = time.Second // between tries to connect
)

// statement need not be durable, and nothing should wait for its commit.
const statement = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`

// Server is where notifications go through.
type Server struct {
	Channel string // of the ledger
	Listens bool   // LISTEN and NOTIFY may be used
	Connect func(ctx context.Context) (*Conn, error)
}

// Conn is a connection that reads.
type Conn struct {
	*pgx.Conn
	// the tail of the ledger, and whether its inbox has rows
	Tail   func(ctx context.Context) (tail int64, inbox bool, err error)
	HangUp func()
}

// Notifier sends the notifications of a process. It sends the notifications that no commit carries: on the
// listening connection if there is one, otherwise in a goroutine of its own, which runs from the first of
// them until Close.
type Notifier struct {
	server  Server
	sender  string                    // identifies this process, which does not wake itself
	sent    engine.Topic              // the last commit took a notification along; only the writer uses it
	pending atomic.Uint32             // the topics of which a notification will be sent
	last    atomic.Pointer[time.Time] // when the last notification was sent; nil: never

	mu        sync.Mutex
	interrupt context.CancelFunc // of the wait of the connection that listens; nil: none listens
	wanted    chan struct{}      // to the goroutine; has room for one; nil: there is no goroutine
	quit      context.CancelFunc
	ended     chan struct{}
}

// New returns a Notifier. It connects when it has something to send.
func New(server Server) *Notifier { return &Notifier{server: server, sender: rand.Text()} }

// WithCommit returns the notification that is sent with a commit; "" for none. Without topics, there is
// nothing to notify of, or a watcher in this process waits: its transaction must not wait for that of the
// notification, so that Notify sends it.
func (n *Notifier) WithCommit(topics engine.Topic) (text string, args []any) {
	n.sent = 0
	if topics == 0 || !n.server.Listens || n.pending.Load() != 0 || n.pause() > 0 {
		return "", nil
	}
	n.sent = topics
	n.note()
	return statement, []any{n.server.Channel, payload(n.sender, topics)}
}

// Notify has a notification sent soon of what did not go with the last commit.
func (n *Notifier) Notify(topics engine.Topic) {
	if topics &^= n.sent; topics != 0 && n.server.Listens {
		n.send(topics)
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

// note notes that a notification is sent now.
func (n *Notifier) note() {
	n.last.Store(new(time.Now()))
}

// pause is how long no other notification may be sent.
func (n *Notifier) pause() time.Duration {
	if last := n.last.Load(); last != nil {
		return Interval - time.Since(*last)
	}
	return 0
}

// send has a notification sent soon.
func (n *Notifier) send(topics engine.Topic) {
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
func (n *Notifier) sendFromGoroutine() {
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
func (n *Notifier) listens(interrupt context.CancelFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.interrupt = interrupt
	if interrupt == nil && n.pending.Load() != 0 {
		n.sendFromGoroutine()
	}
}

// sendOn sends what is pending.
func (n *Notifier) sendOn(ctx context.Context, conn *Conn) error {
	n.note()
	topics := engine.Topic(n.pending.Swap(0))
	if topics == 0 {
		return nil
	}
	_, err := conn.Exec(ctx, statement, n.server.Channel, payload(n.sender, topics))
	return err
}

// idleNotifier is how long the goroutine keeps its connection for the next notification.
const idleNotifier = 10 * time.Second

func (n *Notifier) run(ctx context.Context) {
	defer close(n.ended)
	var conn *Conn
	hangUp := func() {
		if conn != nil {
			conn.HangUp()
			conn = nil
		}
	}
	defer hangUp()
	for {
		var tired <-chan time.Time
		if conn != nil {
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
		if conn == nil {
			if conn, _ = n.server.Connect(ctx); conn == nil { // listeners find the commit by polling
				n.pending.Store(0)
				sleep(ctx, reconnect)
				continue
			}
		}
		if n.sendOn(ctx, conn) != nil {
			hangUp()
		}
	}
}

// Close ends the goroutine.
func (n *Notifier) Close() {
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
