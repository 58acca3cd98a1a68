package export

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// csvColumns are the fields of an attempt, named as in its JSON, and its error.
var csvColumns = []string{"job", "attempt", "queue", "worker", "boot", "host", "pid", "claimed_at",
	"last_heartbeat",
	"ended_at", "outcome", "exit_code", "signal", "error_code"}

// CSV writes a header and a row for each claim that was live within w, in the order in which the claims
// ended. Cells are escaped: they hold no control characters, and no spreadsheet takes one for a formula.
func CSV(ctx context.Context, store *ledger.Store, w Window, out io.Writer) error {
	rows := csv.NewWriter(out)
	if err := rows.Write(csvColumns); err != nil {
		return err
	}
	err := eachClaim(ctx, store, w, nil, func(c *follow.Claim) error { return rows.Write(csvRow(c)) })
	rows.Flush()
	if err == nil {
		err = rows.Error()
	}
	return err
}

func csvRow(c *follow.Claim) []string {
	end := endOf(c)
	row := []string{
		string(c.Job), strconv.Itoa(c.Attempt), c.Queue, c.Worker.Name, c.Worker.Boot, c.Worker.Host,
		strconv.Itoa(c.Worker.PID), words.JSONTime(c.ClaimedAt), timeOrEmpty(c.LastHeartbeat), timeOrEmpty(end.at),
		end.outcome, numberOrEmpty(end.exitCode), end.signal, end.errorCode,
	}
	for i := range row {
		row[i] = words.Cell(row[i])
	}
	return row
}

// ending describes how a claim ended. All fields are empty while the claim is live.
type ending struct {
	at        time.Time
	outcome   string
	exitCode  *int
	signal    string
	errorCode string
}

func endOf(c *follow.Claim) (e ending) {
	if c.End == nil {
		return e
	}
	e.at, e.outcome = c.End.At, c.End.Kind().String()
	switch b := c.End.Body.(type) {
	case *event.Succeeded:
		e.exitCode = b.ExitCode
	case *event.Failed:
		e.exitCode, e.signal, e.errorCode = b.ExitCode, b.Signal, b.ErrorCode
	case *event.Reclaimed:
		e.errorCode = b.Reason
	}
	return e
}

func timeOrEmpty(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return words.JSONTime(t)
}

func numberOrEmpty(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}
