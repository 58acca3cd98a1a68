package notify

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger/internal/engine"
)

// Listen calls wake with the topics of other processes' notifications, until ctx ends. It polls the tail
// whenever no notification came for as long as interval says.
func (n *Notifier) Listen(ctx context.Context, interval time.Duration, wake func(engine.Topic)) {
	for tail := int64(-1); ctx.Err() == nil; sleep(ctx, reconnect) {
		conn, err := n.server.Connect(ctx)
		if err != nil {
			continue
		}
		n.receive(ctx, conn, interval, wake, &tail)
		conn.HangUp()
	}
}

// lookAgain is how long after a notification of the inbox it is looked at again, and then again: of the
// transactions that commit at the same time only one notifies.
var lookAgain = []time.Duration{time.Millisecond, 3 * time.Millisecond, 12 * time.Millisecond}

// receive calls wake as long as the connection lives.
func (n *Notifier) receive(ctx context.Context, conn *Conn, interval time.Duration, wake func(engine.Topic),
	tail *int64) {
	listening, again := false, lookAgain[:0]
	if n.server.Listens {
		_, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{n.server.Channel}.Sanitize())
		listening = err == nil
	}
	defer n.listens(nil)
	for ctx.Err() == nil {
		now, inbox, err := conn.Tail(ctx)
		if err != nil {
			return
		}
		if now != *tail {
			*tail = now
			wake(engine.Claimable | engine.Ended)
		}
		if inbox {
			wake(engine.Claimable | engine.Inbox)
		}
		if !listening {
			sleep(ctx, pollWithoutListen)
			continue
		}
		wait := interval
		if len(again) > 0 {
			wait, again = again[0], again[1:]
		}
		for end := time.Now().Add(wait); ctx.Err() == nil && time.Now().Before(end); {
			topics, err := n.receiveOne(ctx, conn, time.Until(end))
			if err != nil {
				return
			}
			if wake(topics); topics&engine.Inbox != 0 {
				again = lookAgain
				break
			}
		}
	}
}

// receiveOne waits for a notification for so long, and returns the topics of it; 0: none came, or one of this
// process. It sends what is pending first.
func (n *Notifier) receiveOne(ctx context.Context, conn *Conn, wait time.Duration) (engine.Topic, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	n.listens(cancel) // from here on, send interrupts the wait
	if n.pending.Load() != 0 {
		pause := n.pause()
		if pause <= 0 {
			return 0, n.sendOn(ctx, conn)
		}
		wait = min(wait, pause)
	}
	waiting, stop := context.WithTimeout(waiting, wait)
	defer stop()
	notification, err := conn.WaitForNotification(waiting)
	switch {
	case err == nil:
		if sender, topics := readPayload(notification.Payload); sender != n.sender {
			return topics, nil
		}
	case waiting.Err() == nil:
		return 0, err
	}
	return 0, nil
}
