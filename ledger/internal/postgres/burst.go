package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
)

// A burst is a whole transaction in one round trip. All its statements, COMMIT included, are on their way
// before the server has begun with the first one, so that the lock is held while the server works, not while
// the network is waited for. The server stops at the first statement that fails, and COMMIT is then not
// executed.
//
// A client that is frozen while it sends would keep the lock. So a burst must be small enough that the
// system takes it from the process at once.

// mayWrite is engine.MayWrite with the parameters from the one before which there are so many on: where it is
// not true, Begin would have more to do. An older program holds the advisory lock, this program's schema is
// too old to write, or the session is not the one with the mark.
func mayWrite(before int) string {
	return fmt.Sprintf(`(pg_try_advisory_xact_lock_shared($%d::int8)
    AND coalesce((SELECT writable_from FROM compatibility), 0) <= $%d::int8
    AND current_setting('`+markSetting+`', true) = $%d::text)`, before+1, before+2, before+3)
}

const setLockTimeout = `SELECT set_config('lock_timeout', $1, false)`

// Burst implements engine.Burster.
func (p *Engine) Burst(b engine.Burst, wait time.Duration) ([]engine.Answer, error) {
	if p.writer == nil {
		return nil, engine.ErrRetry
	}
	c := connOf(p.writer)
	c.answerTime = p.AnswerTime
	_ = c.drainPipeline() // as tryBegin does
	steps := []engine.WarmupQuery{{Query: `BEGIN`}}
	timeout := lockTimeout(wait)
	if timeout != c.lockTimeout {
		steps = append(steps, engine.WarmupQuery{Query: setLockTimeout,
			Args: []any{strconv.FormatInt(timeout, 10)}})
	}
	steps = append(steps, engine.WarmupQuery{Query: lockTable})
	from, conditions := len(steps), 0
	for _, q := range b.Within {
		if strings.Contains(q.Query, engine.MayWrite) {
			conditions++
			q = engine.WarmupQuery{Query: c.conditional(q.Query, len(q.Args)),
				Args: append(slices.Clip(q.Args), p.lockKey, int64(p.newest), c.mark)}
		}
		steps = append(steps, q)
	}
	if conditions == 0 {
		return nil, fmt.Errorf("%w: a burst without the condition %s", engine.ErrRetry, engine.MayWrite)
	}
	steps = append(steps, engine.WarmupQuery{Query: `COMMIT`})
	steps = append(steps, b.After...)
	c.lockTimeout = unknownTimeout        // as in beginLocked
	within := max(wait, 0) + p.AnswerTime // the server sends what it has only at the end
	answers, committed, err := c.burst(steps, from+len(b.Within), within)
	if err != nil {
		refused, _ := errors.AsType[*pgconn.PgError](err)
		undone := !committed && (errors.Is(err, errNotDurable) || refused != nil && refused.Severity == "ERROR")
		err, _ = c.Explain(err)
		switch {
		case !undone:
			err = fmt.Errorf("%w: %w", engine.ErrUnknown, notRetryable{err})
		case !errors.Is(err, engine.ErrBusy):
			err = fmt.Errorf("%w: %w", engine.ErrRetry, err)
		}
		_ = p.Rollback()
		return nil, err
	}
	c.lockTimeout = timeout
	failpoint.Hit("burst-committed")
	return append(answers[from:from+len(b.Within)], answers[from+len(b.Within)+1:]...), nil
}

// conditional returns a query that has so many parameters with the condition in place.
func (c *connection) conditional(query string, parameters int) string {
	if text, ok := c.conditionals[query]; ok {
		return text
	}
	if c.conditionals == nil || len(c.conditionals) > engine.MaxStatements {
		c.conditionals = make(map[string]string)
	}
	text := strings.ReplaceAll(query, engine.MayWrite, mayWrite(parameters))
	c.conditionals[query] = text
	return text
}

// errNotDurable reports that COMMIT was not sent, or not carried out.
var errNotDurable = errors.New("ledger: not committed")

// burst sends steps and reads their rows, for which the server has as long as within says. committed says
// that the step with this number, which is COMMIT, was carried out.
func (c *connection) burst(steps []engine.WarmupQuery, commit int, within time.Duration) (
	answers []engine.Answer, committed bool, err error) {
	for range 2 { // to prepare one may discard all others
		for _, s := range steps {
			if _, err := c.statement(c.text(s.Query)); err != nil {
				return nil, false, fmt.Errorf("%w: %w", errNotDurable, err)
			}
		}
	}
	for i, s := range steps {
		if err := c.send(c.text(s.Query), s.Args); err != nil {
			if i <= commit {
				err = fmt.Errorf("%w: %w", errNotDurable, err)
			}
			return nil, false, c.abandon(err)
		}
	}
	if err := c.Push(); err != nil {
		return nil, false, err
	}
	failpoint.Hit("burst-sent")
	if c.answerTime == 0 {
		within = 0
	} else {
		defer c.cancelAfter(within)()
		within += min(c.answerTime, lockAnswerTime)
	}
	for i := range steps {
		results, err := c.receiveWithin(within)
		if err != nil {
			return nil, committed, c.abandon(err)
		}
		within = c.answerTime
		a, tag, err := c.readResult(results)
		if err == nil && i == commit && tag.String() != "COMMIT" {
			err = c.abandon(fmt.Errorf("%w: the server answered %s", errNotDurable, tag))
		}
		if err != nil {
			return nil, committed, err
		}
		committed = committed || i == commit
		c.unread--
		answers = append(answers, a)
	}
	_ = c.drainPipeline() // the outcome is known; a dead connection fails next
	return answers, true, nil
}

// cancelAfter asks the server to cancel what it does, so that the outcome of a burst is known: unless it is
// called off before.
func (c *connection) cancelAfter(d time.Duration) (callOff func()) {
	conn, asked := c.conn.PgConn(), make(chan struct{})
	timer := time.AfterFunc(d, func() {
		defer close(asked)
		ctx, cancel := context.WithTimeout(context.Background(), lockAnswerTime)
		defer cancel()
		_ = conn.CancelRequest(ctx) // without it, the answer is awaited a little longer
	})
	return func() {
		if !timer.Stop() {
			<-asked // it must not meet a later statement
		}
	}
}

// readResult reads a result to its end.
func (c *connection) readResult(r *pgconn.ResultReader) (a engine.Answer, tag pgconn.CommandTag, err error) {
	for more := r.NextRow(); more; more = r.NextRow() {
		fields := r.FieldDescriptions()
		if a.Columns == nil {
			for _, f := range fields {
				a.Columns = append(a.Columns, f.Name)
			}
		}
		row := make([]driver.Value, len(fields))
		for i, raw := range r.Values() {
			if row[i], err = valueOf(&fields[i], raw); err != nil {
				return a, tag, c.abandon(err)
			}
		}
		a.Rows = append(a.Rows, row)
	}
	if tag, err = r.Close(); err != nil {
		err = c.abandon(err)
	}
	return a, tag, err
}
