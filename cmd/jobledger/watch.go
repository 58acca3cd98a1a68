package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
)

// watch shows something every so often until it is interrupted, which is its orderly end.
func (p *program) watch(c *cli.Context, every string, show func(*program, *cli.Context) error) error {
	pause := 2 * time.Second
	if every != "" {
		var err error
		if pause, err = parseDuration("watch", every, 100*time.Millisecond, 24*time.Hour, false); err != nil {
			return err
		}
	}
	ctx := untilSignalled(c.Context)
	for first := true; ; first = false {
		if err := p.showAnew(c, first, show); err != nil {
			code, why, _ := explain(err)
			if ctx.Err() != nil {
				return nil
			}
			if code != exitBusy || errors.Is(err, ledger.ErrReplaced) {
				return err
			}
			p.message("%s; trying again in %s", why, render.Duration(pause))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// showAnew shows it over what is there on a terminal; else below that, with an empty line between.
func (p *program) showAnew(c *cli.Context, first bool, show func(*program, *cli.Context) error) error {
	var picture bytes.Buffer
	draft := *p
	draft.stdout = bufio.NewWriter(&picture)
	if err := show(&draft, c); err != nil {
		return err
	}
	if err := draft.flush(); err != nil {
		return err
	}
	text := picture.String()
	switch {
	case p.json:
	case p.stdoutTerminal: // line by line over the old picture, and not on an empty screen: that would flicker
		const clear, home, restOfLine, restOfScreen = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"
		text = home + strings.ReplaceAll(text, "\n", restOfLine+"\n") + restOfScreen
		if first {
			text = clear + text
		}
	case !first:
		text = "\n" + text
	}
	if _, err := p.stdout.WriteString(text); err != nil {
		return err
	}
	return p.flush()
}

// untilSignalled returns a context that ends with the first INT or TERM. Both stay caught until the process ends: timeout(1)
// and service managers send them twice, and the second must not make a death of an orderly end.
func untilSignalled(ctx context.Context) context.Context {
	told, tell := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		tell()
	}()
	return told
}
