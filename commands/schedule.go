package commands

import (
	"context"
	"errors"
	"fmt"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/schedules"
)

// MaxSchedulePayload is the size of the payload of a schedule, which is part of its event, in bytes.
const MaxSchedulePayload = 16 << 10

// Tick asks for the job of a schedule. Only package schedule asks so.
type Tick struct {
	Schedule schedules.Schedule // as read in the same transaction
	Event    event.Enqueued     // of it Tick and Next count: zero for an operator's run besides the ticks
	Job      Enqueue            // waits for jobs until they have ended in whichever way, if for any
}

// EnqueueTick enqueues the job of a tick in the caller's transaction. A key that another job has already is a
// ConflictError, even if the payload is the same. After another error than ConflictError and InvalidError the
// transaction must end.
func (s *Service) EnqueueTick(ctx context.Context, tx *ledger.Tx, actor string, t Tick) (projection.Job,
	error) {
	salt := make([]byte, 16)
	s.fillSalts(salt)
	n, err := s.newJob(&t.Job, salt)
	if err != nil {
		return projection.Job{}, err
	}
	j, err := n.find(ctx, tx)
	if err != nil {
		return j, err
	}
	if n.defaults, err = queueDefaults(ctx, tx, n.Queue); err != nil {
		return j, err
	}
	f, err := n.decide(j, tx.Now())
	if errors.Is(err, errNoChange) {
		err = &ConflictError{n.name(), j.ID, fmt.Sprintf("key %q belongs to it", n.Key)}
	}
	if err != nil {
		return j, err
	}
	body := f.Body.(*event.Enqueued)
	body.Schedule, body.Tick, body.Next = t.Schedule.Spec.Name, t.Event.Tick, t.Event.Next
	f.Actor, f.Schedule = actor, &t.Schedule
	if _, err := n.depend(ctx, tx, &f); err != nil {
		return j, err
	}
	return journal.Record(ctx, tx, f)
}

// CancelIn cancels a job in the caller's transaction. A job that has ended is a ConflictError.
func CancelIn(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Cancel) (projection.Job,
	error) {
	return apply(ctx, tx, actor, j, c)
}
