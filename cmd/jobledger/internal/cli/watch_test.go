package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

func TestWatchRedrawsOnTerminal(t *testing.T) {
	for _, tt := range []struct {
		terminal, json bool
		want           string
	}{
		{false, false, "a\nb\n\na\nb\n"},
		{false, true, "a\nb\na\nb\n"},
		{true, false, "\x1b[2J" + strings.Repeat("\x1b[Hjobs.db at 2026-05-04 12:00:00+05:45, again every 100ms "+
			"until you press Ctrl-C\x1b[K\n\x1b[K\na\x1b[K\nb\x1b[K\n\x1b[J", 2)},
	} {
		var out bytes.Buffer
		p := &Program{Stdout: bufio.NewWriter(&out), Stderr: io.Discard, StdoutTerminal: tt.terminal, JSON: tt.json,
			Now: noon, DB: "jobs.db"}
		ctx, cancel := context.WithCancel(t.Context())
		shown := 0
		err := p.Watch(ctx, "100ms", func(p *Program) error {
			if shown++; shown == 2 {
				cancel()
			}
			if err := p.PrintLine("a"); err != nil {
				return err
			}
			return p.PrintLine("b")
		})
		if err != nil || out.String() != tt.want {
			t.Errorf("terminal %t, json %t: got %q, %v; want %q", tt.terminal, tt.json, out.String(), err, tt.want)
		}
	}
}
