package await

import (
	"context"
	"errors"
	"time"

	"jobledger/ledger"
)

// Pauses between the tries to reach a server, which grow.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// Outage keeps a command that waits going while the server of its ledger is away, as in a restart or a
// failover. The zero value is not an outage.
type Outage struct {
	Say func(format string, args ...any) // informs the user; nil: there is no message

	since time.Time // zero: the ledger answers
	pause time.Duration
}

// Outlast returns nil after a pause if err says that the server is away and may come back; otherwise err. It
// returns why ctx ended, if it did.
func (o *Outage) Outlast(ctx context.Context, store *ledger.Store, err error) error {
	away := errors.Is(err, ledger.ErrIO) || errors.Is(err, ledger.ErrBusy)
	if !away || !ledger.IsServerAddress(store.DSN()) || ctx.Err() != nil {
		return err
	}
	return o.Pause(ctx, err)
}

// Pause waits for the ledger, which does not answer because of err: 50 ms, and twice as long each time, up to
// a second. It returns why ctx ended, if it did.
func (o *Outage) Pause(ctx context.Context, err error) error {
	if o.since.IsZero() {
		o.since, o.pause = time.Now(), firstPause
		o.say("%v; waiting for it", err)
	}
	slept := sleep(ctx, o.pause)
	o.pause = min(2*o.pause, lastPause)
	return slept
}

// Over says that the ledger answers.
func (o *Outage) Over() {
	if !o.since.IsZero() {
		o.say("the ledger answers again, after %s", time.Since(o.since).Round(time.Millisecond))
		o.since = time.Time{}
	}
}

func (o *Outage) say(format string, args ...any) {
	if o.Say != nil {
		o.Say(format, args...)
	}
}
