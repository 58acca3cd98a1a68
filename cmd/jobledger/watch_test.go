package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestWatchDrawsOverOnATerminalAndAppendsElsewhere(t *testing.T) {
	for _, tt := range []struct {
		terminal, json bool
		want           string
	}{
		{false, false, "a\nb\n\na\nb\n"},
		{false, true, "a\nb\na\nb\n"},
		{true, false, "\x1b[2J\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J"},
	} {
		var out bytes.Buffer
		p := &program{stdout: bufio.NewWriter(&out), stderr: io.Discard, stdoutTerminal: tt.terminal, json: tt.json}
		app := cli.NewContext(cli.NewApp(), nil, &cli.Context{})
		ctx, cancel := context.WithCancel(t.Context())
		app.Context = ctx
		shown := 0
		err := p.watch(app, "100ms", func(p *program, _ *cli.Context) error {
			if shown++; shown == 2 {
				cancel()
			}
			if err := p.printLine("a"); err != nil {
				return err
			}
			return p.printLine("b")
		})
		if err != nil || out.String() != tt.want {
			t.Errorf("terminal %t, json %t: got %q, %v; want %q", tt.terminal, tt.json, out.String(), err, tt.want)
		}
	}
}
