package commands

import (
	"context"
	"errors"
	"fmt"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/past"
)

// CheckKeys returns the index of the first of jobs that Enqueue would refuse now because its key belongs to a
// job with another payload, and the ConflictError. It returns -1 if there is none, and -1 with an error if
// reading failed.
func (s *Service) CheckKeys(ctx context.Context, jobs []Enqueue) (first int, err error) {
	first = -1
	err = s.read(ctx, func(tx *ledger.Tx) error {
		for i, e := range jobs {
			if e.Key == "" {
				continue
			}
			e.ID = ""
			n := newJob{Enqueue: &e}
			j, err := n.find(ctx, tx)
			if err != nil {
				return err
			}
			_, err = n.findPast(ctx, tx, j)
			if err == nil {
				_, err = n.decide(j, tx.Now())
			}
			if errors.Is(err, ErrConflict) {
				first = i
				return err
			}
		}
		return nil
	})
	return first, err
}

// find returns the job that n's id or key names, with its bodies; if there is none, a Job that has only an
// id.
func (n newJob) find(ctx context.Context, tx *ledger.Tx) (j projection.Job, err error) {
	found := false
	if n.ID != "" {
		j, found, err = projection.GetUnexpected(ctx, tx, n.id)
	}
	if n.Key != "" && !found && err == nil {
		j, found, err = projection.GetByKey(ctx, tx, n.Queue, n.Key)
	}
	if err == nil && !found && n.UniqueWhile == event.WhileUnfinished {
		err = keyOpen(ctx, tx, n.name(), "", n.Queue, n.Key)
	}
	if err != nil || !found {
		return projection.Job{ID: n.id}, err
	}
	return j, projection.LoadBodies(ctx, tx, &j)
}

// findPast returns the job that n names if it has left the ledger; the zero Job if it has not left, or does
// not exist. j is the result of find.
func (n newJob) findPast(ctx context.Context, tx *ledger.Tx, j projection.Job) (gone projection.Job,
	err error) {
	if j.State != 0 {
		return gone, nil
	}
	if n.Key != "" {
		k, ok, err := past.KeyOf(ctx, tx, n.Queue, n.Key)
		if err != nil {
			return gone, err
		}
		switch what := fmt.Sprintf("key %q", n.Key); {
		case ok && !k.Matches(n.Payload):
			return gone, &ConflictError{n.name(), k.Job, what + " belongs to it, with another payload; it is archived"}
		case ok && n.UniqueWhile != "":
			return gone, &ConflictError{n.name(), k.Job, what + " belongs to it, for ever"}
		case ok:
			return projection.Job{ID: k.Job, Queue: n.Queue, Key: n.Key, State: k.State}, nil
		}
	}
	if n.ID == "" {
		return gone, nil
	}
	left, err := past.MayHaveLeft(ctx, tx, n.id)
	if err == nil && left {
		err = &ConflictError{n.name(), n.id, "its id is as old as archived jobs, and may be that of one"}
	}
	return gone, err
}

// compare returns errNoChange if j, found by the id or the key of n, is the job that n asks for.
func (n newJob) compare(j projection.Job) error {
	what := fmt.Sprintf("key %q", n.Key)
	if n.ID != "" && j.ID == n.id {
		what = fmt.Sprintf("id %s", n.id)
	}
	if why := journal.Other(j, n.Queue, n.Key, n.UniqueWhile, n.Form, n.Payload); why != "" {
		return &ConflictError{n.name(), j.ID, what + " belongs to it" + why}
	}
	return errNoChange
}
