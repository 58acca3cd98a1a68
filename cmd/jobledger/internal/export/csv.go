package main

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

// csvColumns are the fields of an attempt as the JSON has them, and what it failed of.
var csvColumns = []string{"job", "attempt", "queue", "worker", "boot", "host", "pid", "claimed_at", "last_heartbeat",
	"ended_at", "outcome", "exit_code", "signal", "error_code"}

// exportCSV writes a row for each claim that was live within s.
func exportCSV(ctx context.Context, service *commands.Service, s stretch, out io.Writer) error {
	w := csv.NewWriter(out)
	if err := w.Write(csvColumns); err != nil {
		return err
	}
	err := walkClaims(ctx, service, s, nil, func(c *projection.Claim) error { return w.Write(csvRow(c)) })
	w.Flush()
	if err == nil {
		err = w.Error()
	}
	return err
}

func csvRow(c *projection.Claim) []string {
	end := endOf(c)
	row := []string{string(c.Job), strconv.Itoa(c.Attempt), c.Queue, c.Worker.Name, c.Worker.Boot, c.Worker.Host, strconv.Itoa(c.Worker.PID),
		jsonTime(c.ClaimedAt), timeOrEmpty(c.LastHeartbeat), timeOrEmpty(end.at), end.outcome, numberOrEmpty(end.exitCode), end.signal, end.errorCode}
	for i := range row {
		row[i] = harmlessCell(escape(row[i])) // it may come to a terminal, and JSON has the exact text
	}
	return row
}

// harmlessCell keeps a spreadsheet from taking text for a formula.
func harmlessCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// ending is what became of a claim, in words; empty while it is live.
type ending struct {
	at        time.Time
	outcome   string
	exitCode  *int
	signal    string
	errorCode string
}

func endOf(c *projection.Claim) (e ending) {
	if c.End == nil {
		return e
	}
	e.at, e.outcome = c.End.At, c.End.Kind().String()
	switch b := c.End.Body.(type) {
	case *ledger.Succeeded:
		e.exitCode = b.ExitCode
	case *ledger.Failed:
		e.exitCode, e.signal, e.errorCode = b.ExitCode, b.Signal, b.ErrorCode
	case *ledger.Reclaimed:
		e.errorCode = b.Reason
	}
	return e
}

func timeOrEmpty(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return jsonTime(t)
}

func numberOrEmpty(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}
