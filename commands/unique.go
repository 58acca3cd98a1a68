package commands

import (
	"context"
	"errors"
	"fmt"

	"jobledger/commands/internal/check"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/ends"
)

// What is done about a job whose key another job has: the values of Enqueue.OnDuplicate.
const (
	// the answer is the other job, unchanged
	IgnoreDuplicate = check.IgnoreDuplicate
	// the other job gets the payload, if it waits; if it has begun: a conflict
	ReplaceDuplicate = check.ReplaceDuplicate
	// the same, but a job that has begun keeps its payload: Enqueued.Left
	RefreshDuplicate = check.RefreshDuplicate
)

// errLeft means that the other job has begun and is left as it is, with another payload.
var errLeft = errors.New("left as it is")

// duplicate decides about n where j has its key: errNoChange or errLeft where the answer is j as it is.
func (n newJob) duplicate(j projection.Job) (journal.Fact, error) {
	conflict := func(why string) (journal.Fact, error) {
		return journal.Fact{}, &ConflictError{n.name(), j.ID, fmt.Sprintf("key %q belongs to it%s", n.Key, why)}
	}
	switch {
	case j.UniqueWhile == "":
		return conflict(", for ever")
	case j.Form != n.Form:
		return conflict(", and only one of the two jobs carries its command")
	case n.OnDuplicate != ReplaceDuplicate && n.OnDuplicate != RefreshDuplicate,
		string(j.Payload) == string(n.Payload) && j.Payload != nil:
		return journal.Fact{}, errNoChange
	case j.State != event.Queued && j.State != event.Blocked && n.OnDuplicate == RefreshDuplicate:
		return journal.Fact{}, errLeft
	case j.State != event.Queued && j.State != event.Blocked:
		return conflict(fmt.Sprintf("; it is %s, and its payload cannot be replaced any more", j.State))
	case j.Salt == nil:
		return conflict("; its payload is missing and cannot be replaced")
	}
	f, wrong := journal.Replace(j, append([]byte{}, n.Payload...)) // nil would be none
	return f, invalid(wrong)
}

// keyOpen returns a ConflictError if the key of a queue was that of a job, other than but, which was
// cancelled and whose command may still run.
func keyOpen(ctx context.Context, tx *ledger.Tx, name string, but event.JobID, queue, key string) error {
	j, until, open, err := ends.OfKey(ctx, tx, queue, key, but, tx.Now())
	if err != nil || !open {
		return err
	}
	return &ConflictError{name, j.ID, fmt.Sprintf("key %q belongs to it until its command has ended; it is "+
		"%s, and its command may run until %s", key, j.State, event.FormatTime(until))}
}

// keyTaken returns a ConflictError if j, which has ended, cannot run again because another job has its key.
func keyTaken(ctx context.Context, tx *ledger.Tx, c Retry, j projection.Job) error {
	holder, taken, err := projection.KeyHolder(ctx, tx, j)
	if err == nil && !taken && j.UniqueWhile == event.WhileUnfinished && !c.Now {
		err = keyOpen(ctx, tx, c.name(), j.ID, j.Queue, j.Key)
	}
	if err != nil || !taken {
		return err
	}
	return &ConflictError{c.name(), j.ID,
		fmt.Sprintf("its key %q is that of job %s by now, which is %s", j.Key, holder.ID, holder.State)}
}
