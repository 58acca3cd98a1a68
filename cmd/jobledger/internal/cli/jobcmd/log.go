package jobcmd

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/words"
)

// LogHandler writes what a worker says on stderr: lines for people, or with --json one object a line, as
// package slog writes them.
func LogHandler(p *cli.Program, least slog.Level) slog.Handler {
	if p.JSON {
		return slog.NewJSONHandler(stderrOf{p}, &slog.HandlerOptions{Level: least})
	}
	return &lineHandler{p: p, mu: new(sync.Mutex), least: least}
}

// stderrOf writes to the program's stderr, which may be exchanged in between.
type stderrOf struct{ p *cli.Program }

func (w stderrOf) Write(line []byte) (int, error) { return w.p.Stderr.Write(line) }

// lineHandler writes lines for people: the time, the message, then what it is about, and the attributes that
// every line has.
type lineHandler struct {
	p     *cli.Program
	mu    *sync.Mutex
	least slog.Level  // below it, nothing is said; the zero is Info
	last  []slog.Attr // of every line
}

func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.least
}

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	fmt.Fprintf(&line, "%s %s", h.p.FormatMillis(r.Time), r.Message)
	add := func(a slog.Attr) bool {
		if text := h.text(a.Value); text != "" {
			fmt.Fprintf(&line, " %s=%s", a.Key, text)
		}
		return true
	}
	r.Attrs(add)
	for _, a := range h.last {
		add(a)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.p.Message("%s", words.Escape(line.String()))
	return nil
}

// text returns a value as one word, or quoted; times as everywhere.
func (h *lineHandler) text(v slog.Value) string {
	text := v.String()
	if t, ok := v.Any().(time.Time); ok {
		text = strings.Replace(h.p.FormatMillis(t), " ", "T", 1)
	}
	if strings.ContainsAny(text, " \"=") {
		return strconv.Quote(text)
	}
	return text
}

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.last = append(attrs[:len(attrs):len(attrs)], h.last...)
	return &with
}

func (h *lineHandler) WithGroup(string) slog.Handler { return h }
