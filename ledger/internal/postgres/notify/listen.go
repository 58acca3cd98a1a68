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

// receive calls wake as long as the connection lives.
func (n *Notifier) receive(ctx context.Context, conn *Conn, interval time.Duration, wake func(engine.Topic),
	tail *int64) {
	listening := false
	if n.server.Listens {
		_, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{n.server.Channel}.Sanitize())
		listening = err == nil
	}
	defer n.listens(nil)
	for ctx.Err() == nil {
		now, err := conn.Tail(ctx)
		if err != nil {
			return
		}
		if now != *tail {
			*tail = now
			wake(engine.AnyTopic)
		}
		if !listening {
			sleep(ctx, pollWithoutListen)
			continue
		}
		for end := time.Now().Add(interval); ctx.Err() == nil && time.Now().Before(end); {
			if n.receiveOne(ctx, conn, time.Until(end), wake) != nil {
				return
			}
		}
	}
}

// receiveOne waits for a notification for so long, and calls wake with it. It sends what is pending first.
func (n *Notifier) receiveOne(
	ctx context.Context, conn *Conn, wait time.Duration, wake func(engine.Topic),
) error {
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
