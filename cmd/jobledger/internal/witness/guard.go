package witness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"jobledger/ledger"
)

// Guard looks at a ledger on behalf of a worker: at its start, from time to time, and at its end. The zero
// value of its options works.
type Guard struct {
	Witness *Witness
	Store   *ledger.Store
	Warn    func(text string) // for what is not a reason to stop; each text once
	Every   time.Duration     // between two looks; default 1h

	warned map[string]bool
	alarm  *AlarmError
}

// AlarmError means that a ledger is not a continuation of what this host saw.
type AlarmError struct{ Seen Seen }

func (e *AlarmError) Error() string {
	return "the ledger is not a continuation of what this host saw: " + e.Seen.Difference()
}

// finalLook bounds how long the look at the end of a worker may take.
const finalLook = 30 * time.Second

// Begin looks before anything is claimed. Its only error is an *AlarmError: whatever else goes wrong, such as
// a state folder that cannot be written, is a warning.
func (g *Guard) Begin(ctx context.Context) error {
	g.look(ctx)
	return g.err()
}

// Watch looks from time to time until end is called, which looks for the last time. With an alarm it calls
// stop, once. end returns what Begin does.
func (g *Guard) Watch(ctx context.Context, stop func()) (end func() error) {
	every := g.Every
	if every == 0 {
		every = time.Hour
	}
	watching, cancel := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for g.alarm == nil {
			select {
			case <-watching.Done():
				return
			case <-ticker.C:
				g.look(watching)
			}
		}
		stop()
	})
	return func() error {
		cancel()
		looks.Wait()
		if g.alarm == nil {
			last, done := context.WithTimeout(context.WithoutCancel(ctx), finalLook)
			defer done()
			g.look(last)
		}
		return g.err()
	}
}

func (g *Guard) err() error {
	if g.alarm == nil {
		return nil
	}
	return g.alarm
}

// look compares the ledger with what was seen, and advances unless that is an alarm.
func (g *Guard) look(ctx context.Context) {
	seen, err := g.Witness.Advance(ctx, g.Store)
	if text := seen.Pending(); text != "" {
		g.warn("the ledger is not the one that this host saw: " + text +
			"; this is said at each start until 'jobledger witness --accept --reason …'")
	}
	switch {
	case err != nil && ctx.Err() == nil:
		g.warn(fmt.Sprintf("this host is not a witness of the ledger: %v", err))
	case err != nil:
	case seen.Alarm():
		g.alarm = &AlarmError{seen}
	}
}

func (g *Guard) warn(text string) {
	if g.warned[text] {
		return
	}
	if g.warned == nil {
		g.warned = make(map[string]bool)
	}
	g.warned[text] = true
	g.Warn(text)
}
