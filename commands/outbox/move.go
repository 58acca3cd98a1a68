package outbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"jobledger/commands"
	"jobledger/commands/internal/intake"
	"jobledger/commands/internal/usertx"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

const (
	firstRows = 64      // that the first step asks for
	maxRows   = 1024    // that a step moves at most
	maxBytes  = 8 << 20 // of payloads, likewise; the row that exceeds it is the last one
)

const next = `SELECT id, job, payload FROM jobledger_outbox WHERE refused IS NULL ORDER BY n LIMIT `

// mover moves the rows of one outbox into the ledger of its relay.
type mover struct {
	*Relay
	conn usertx.Conn

	// limit is how many rows the next step asks for: fewer where they are large, since a server sends all
	// rows that it was asked for.
	limit int
}

// sourceError is an error of the database that has the outbox, and not of the ledger.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return "outbox: " + e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// step moves the next rows, if there are any, and returns how many it looked at. The rows are deleted once
// their jobs are durable. Whatever ends it in between, the next step repeats it: Service.Enqueue recognizes
// ids.
func (m *mover) step(ctx context.Context) (rows int, moved Moved, err error) {
	jobs, broken, err := m.read(ctx)
	if err != nil {
		return 0, moved, &sourceError{err}
	}
	failpoint.Hit("outbox-read")
	moved.Refused = broken
	if len(jobs) > 0 {
		if err := m.enqueue(ctx, jobs, &moved); err != nil {
			return 0, moved, err
		}
		failpoint.Hit("outbox-enqueued")
	}
	refused := make(map[string]bool)
	for _, b := range moved.Refused {
		refused[b.ID] = true
		_, err := m.conn.Exec(ctx, `UPDATE jobledger_outbox SET refused = $1 WHERE id = $2`, b.Why, b.ID)
		if err != nil {
			return 0, moved, &sourceError{err}
		}
	}
	var done []any
	for _, j := range jobs {
		if !refused[j.ID] {
			done = append(done, j.ID)
		}
	}
	if err := remove(ctx, m.conn, done); err != nil {
		return 0, moved, &sourceError{err}
	}
	failpoint.Hit("outbox-deleted")
	return len(jobs) + len(broken), moved, nil
}

// read returns the next jobs, and the rows before them that are none.
func (m *mover) read(ctx context.Context) (jobs []commands.Enqueue, broken []RefusedRow, err error) {
	size := 0
	err = m.conn.Query(ctx, next+strconv.Itoa(m.limit), func(scan func(...any) error) (bool, error) {
		var id, text string
		var payload []byte
		if err := scan(&id, &text, &payload); err != nil {
			return false, err
		}
		asked, err := intake.Decode[commands.Dependency](id, text, payload)
		job := commands.Enqueue(asked)
		if err == nil {
			err = job.Check()
		}
		if err != nil {
			broken = append(broken, RefusedRow{id, err.Error()})
		} else {
			jobs = append(jobs, job)
		}
		size += len(payload) + len(text)
		return size < maxBytes, nil
	})
	switch n := len(jobs) + len(broken); {
	case size >= maxBytes:
		m.limit = n
	case n == m.limit:
		m.limit = min(2*n, maxRows)
	}
	return jobs, broken, err
}

// enqueue puts jobs into the ledger, in one transaction if it takes all of them.
func (r *Relay) enqueue(ctx context.Context, jobs []commands.Enqueue, moved *Moved) error {
	answers, err := r.Service.Enqueue(ctx, r.actor(), jobs...)
	if err == nil {
		moved.count(answers)
		return nil
	}
	if !isRefusal(err) {
		return err
	}
	if len(jobs) == 1 {
		return r.refuse(ctx, jobs[0], err, moved)
	}
	for i := range jobs {
		if err := r.enqueue(ctx, jobs[i:i+1], moved); err != nil {
			return err
		}
	}
	return nil
}

// isRefusal reports whether the ledger will never take such a job.
func isRefusal(err error) bool {
	return errors.Is(err, commands.ErrConflict) || errors.Is(err, commands.ErrInvalid) ||
		errors.Is(err, commands.ErrNoJob)
}

// refuse takes in why the ledger does not take a job. A relay that was stopped for long may ask for a job
// that another relay has moved, and whose payload was erased since: that job is there.
func (r *Relay) refuse(ctx context.Context, job commands.Enqueue, why error, moved *Moved) error {
	var erased bool
	err := r.Service.Store.Read(ctx, func(tx *ledger.Tx) error {
		j, found, err := projection.Get(ctx, tx, event.JobID(job.ID))
		erased = found && j.Erased && j.Queue == job.Queue
		return err
	})
	switch {
	case err != nil:
		return err
	case erased:
		moved.Existing++
	default:
		moved.Refused = append(moved.Refused, RefusedRow{job.ID, why.Error()})
	}
	return nil
}

// remove deletes the rows with these ids. On SQLite a number n may be used again, an id is not.
func remove(ctx context.Context, conn usertx.Conn, ids []any) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := conn.Exec(ctx, `DELETE FROM jobledger_outbox WHERE id IN (`+placeholders(len(ids))+`)`, ids...)
	return err
}

// placeholders returns $1,$2,… up to n.
func placeholders(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, ",$%d", i+1)
	}
	return list.String()[1:]
}
