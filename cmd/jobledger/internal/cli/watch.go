package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
)

// Watch calls show every so often (default 2s) until it is interrupted, and then returns nil. While the
// ledger is busy it tries again.
func (p *Program) Watch(ctx context.Context, every string, show func(draft *Program) error) error {
	pause := 2 * time.Second
	if every != "" {
		var err error
		if pause, err = ParseDuration("watch", every, 100*time.Millisecond, 24*time.Hour, false); err != nil {
			return err
		}
	}
	ctx = UntilSignalled(ctx)
	for first := true; ; first = false {
		if err := p.redraw(first, pause, show); err != nil {
			code, why, _ := fault.Explain(err)
			if ctx.Err() != nil {
				return nil
			}
			if code != ExitBusy || errors.Is(err, ledger.ErrReplaced) {
				return err
			}
			p.Message("%s; trying again in %s", why, words.Duration(pause))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// redraw calls show and prints the result: on a terminal over the last one, below which ledger it is of and
// when it was drawn, otherwise after an empty line.
func (p *Program) redraw(first bool, pause time.Duration, show func(draft *Program) error) error {
	var picture bytes.Buffer
	draft := *p
	draft.Stdout = bufio.NewWriter(&picture)
	if err := show(&draft); err != nil {
		return err
	}
	if err := draft.Flush(); err != nil {
		return err
	}
	text := picture.String()
	switch {
	case p.JSON:
	case p.StdoutTerminal: // line by line over the old picture, and not on an empty screen: that would flicker
		const clear, home, restOfLine, restOfScreen = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"
		text = fmt.Sprintf("%s at %s, again every %s until you press Ctrl-C\n\n", DisplayDSN(p.DB),
			words.Time(p.Now()), words.Duration(pause)) + text
		text = home + strings.ReplaceAll(text, "\n", restOfLine+"\n") + restOfScreen
		if first {
			text = clear + text
		}
	case !first:
		text = "\n" + text
	}
	if _, err := p.Stdout.WriteString(text); err != nil {
		return err
	}
	return p.Flush()
}

// UntilSignalled returns a context that ends with the first INT or TERM. Both signals stay caught until the
// process ends: timeout(1) and service managers may send them twice, and a second one must not kill a process
// that is ending normally.
func UntilSignalled(ctx context.Context) context.Context {
	ended, end := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		end()
	}()
	return ended
}
