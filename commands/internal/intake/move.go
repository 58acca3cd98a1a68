package intake

import (
	"context"
	"errors"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/commands/internal/check"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/projection/inbox"
	"jobledger/projection/past"
)

// Asked is a row that is to become a job.
type Asked[D Reference] struct {
	Job[D]
	Actor string

	// New: no job of the ledger or of its archive has this id, so that none is looked for.
	New bool

	// Same are jobs of the same step that turned out to be others, by the ids that they asked for.
	Same map[event.JobID]event.JobID
}

// Mover moves rows of the inbox of a ledger.
type Mover[D Reference] struct {
	Store *ledger.Store

	// Enqueue enqueues the job of a row in tx, and returns the id of the job that it has become. It writes
	// nothing if it returns an error for which Refused is true.
	Enqueue func(ctx context.Context, tx *ledger.Tx, asked Asked[D]) (event.JobID, error)
	Refused func(error) bool // the ledger does not take such a row

	// StoreFailed reports whether err is of the store, and not of what the ledger holds.
	StoreFailed func(err error) bool
}

// Move moves rows where there may be any, which it does not ask the database unless this process was notified
// of rows or has not looked for a second. With all it moves all that there are; otherwise so many that a
// caller with something else to do does not wait long.
func (m Mover[D]) Move(ctx context.Context, all bool) (err error) {
	if m.Store == nil {
		return nil
	}
	look, sure := m.Store.InboxDue()
	if !look && !all {
		return nil
	}
	if !sure {
		some := false
		err := m.Store.Peek(ctx, func(tx *ledger.Tx) (err error) {
			some, err = inbox.Ask(tx).Answer(ctx)
			return err
		})
		if err != nil || !some {
			return err
		}
	}
	defer func() {
		if err != nil {
			m.Store.NoteInbox()
		}
	}()
	for {
		n, err := m.some(ctx)
		if err != nil || n < inbox.MaxRows && !all || n == 0 {
			return err
		}
		if !all {
			m.Store.NoteInbox()
			return nil
		}
	}
}

// some moves the rows in front. If what the ledger holds makes that fail, it moves them one by one, and the
// one with which it fails is refused, so that it does not keep the others waiting.
func (m Mover[D]) some(ctx context.Context) (rows int, err error) {
	rows, err = m.step(ctx, inbox.MaxRows, nil)
	if err == nil || m.StoreFailed(err) || isGone(err) {
		return rows, err
	}
	for range inbox.MaxRows {
		n, err := m.step(ctx, 1, nil)
		if err != nil && !m.StoreFailed(err) && !isGone(err) {
			n, err = m.step(ctx, 1, err)
		}
		if rows += n; err != nil || n == 0 {
			return rows, err
		}
	}
	return rows, nil
}

// isGone reports whether err is of no single row.
func isGone(err error) bool {
	return errors.Is(err, ledger.ErrAltered) || errors.Is(err, ledger.ErrNested) ||
		errors.Is(err, ledger.ErrClosed)
}

// step moves up to limit rows in one transaction, and returns how many there were. With why, they are
// refused.
func (m Mover[D]) step(ctx context.Context, limit int, why error) (rows int, err error) {
	err = m.Store.Write(ctx, func(tx *ledger.Tx) error {
		list, err := inbox.Next(ctx, tx, limit)
		if rows = len(list); err != nil || rows == 0 {
			return err
		}
		same := make(map[event.JobID]event.JobID)
		seen := make(map[string]bool, len(list))
		for _, r := range list {
			refusal := why
			if refusal == nil {
				refusal = m.enqueue(ctx, tx, r, seen, same)
			}
			if refusal != nil {
				_, noJob := errors.AsType[*malformed](refusal)
				if why == nil && !noJob && !m.Refused(refusal) {
					return refusal
				}
				if err := inbox.Refuse(tx, r, refusal.Error()); err != nil {
					return err
				}
			}
		}
		failpoint.Hit("inbox-enqueued")
		return inbox.Remove(tx, list)
	})
	if err == nil && rows > 0 {
		failpoint.Hit("inbox-moved")
	}
	return rows, err
}

// malformed is a row that does not say a job.
type malformed struct{ err error }

func (e *malformed) Error() string { return "the column job: " + e.err.Error() }

// enqueue enqueues the job of a row.
func (m Mover[D]) enqueue(ctx context.Context, tx *ledger.Tx, r inbox.Row, seen map[string]bool,
	same map[event.JobID]event.JobID) error {
	job, err := Decode[D](r.ID, r.Job, r.Payload)
	if err == nil {
		if p := check.Reserved("requires", job.Requires); p != nil {
			err = errors.New(p.Field + " " + p.Got + " is not allowed; allowed: " + p.Allowed)
		}
	}
	if err != nil {
		return &malformed{err}
	}
	asked := Asked[D]{Job: job, Actor: ActorOf(r.Role), Same: same}
	// A job of this step with the same id is not in the table yet when the rows are read.
	if id, err := ulid.ParseStrict(r.ID); err == nil {
		canonical := id.String()
		asked.New = !r.Taken && canonical == r.ID && !seen[canonical]
		seen[canonical] = true
		if asked.New {
			left, err := past.MayHaveLeft(ctx, tx, event.JobID(canonical))
			if err != nil {
				return err
			}
			asked.New = !left
		}
	}
	id, err := m.Enqueue(ctx, tx, asked)
	if err == nil && string(id) != r.ID {
		same[event.JobID(strings.ToUpper(r.ID))] = id
	}
	return err
}

// ActorPrefix begins the name under which jobs of the inbox are enqueued, before the role that asked.
const ActorPrefix = "inbox"

// ActorOf returns the name under which a job is enqueued for which role has asked.
func ActorOf(role string) string {
	if name := ActorPrefix + ":" + role; role != "" && check.Actor(name) == nil {
		return name
	}
	return ActorPrefix
}
