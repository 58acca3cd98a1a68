package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/ledger"
	"jobledger/projection"
)

// Service carries out commands on a ledger. It is safe for concurrent use.
type Service struct {
	Store *ledger.Store
	NewID func() string // ULIDs for jobs and tokens; nil: random, and growing within a millisecond

	// NewSalt fills its argument with what nobody can guess; nil: from crypto/rand. Only a simulation sets it.
	NewSalt func([]byte)
}

func (s *Service) newID() string {
	if s.NewID != nil {
		return s.NewID()
	}
	return ulid.Make().String()
}

func (s *Service) fillSalts(salts []byte) {
	if s.NewSalt != nil {
		s.NewSalt(salts)
		return
	}
	_, _ = rand.Read(salts) // never fails
}

// Enqueued is the answer to one Enqueue.
type Enqueued struct {
	projection.Job
	Existing bool // the job was there already: same id, or same queue, key and payload
}

// Enqueue appends new jobs, all or none. A job whose key (or id) is there already with the same payload is the
// answer, not a second job. Errors: InvalidError; ConflictError where the payload is another or was erased.
func (s *Service) Enqueue(ctx context.Context, actor string, jobs ...Enqueue) ([]Enqueued, error) {
	if err := CheckActor(actor); err != nil {
		return nil, err
	}
	salts := make([]byte, 16*len(jobs))
	s.fillSalts(salts)
	ids := make([]ledger.JobID, len(jobs))
	for i := range jobs {
		if err := jobs[i].Check(); err != nil {
			if len(jobs) > 1 {
				err = fmt.Errorf("job %d of %d: %w", i+1, len(jobs), err)
			}
			return nil, err
		}
		if jobs[i].ID == "" {
			ids[i] = ledger.JobID(s.newID())
			continue
		}
		id, err := ulid.ParseStrict(jobs[i].ID)
		if err != nil {
			return nil, &InvalidError{"id", fmt.Sprintf("%.80q", jobs[i].ID), "a ULID"}
		}
		ids[i] = ledger.JobID(id.String()) // in capitals, however it was written
	}
	var answers []Enqueued
	err := s.Store.Write(ctx, func(tx *ledger.Tx) error {
		answers = make([]Enqueued, len(jobs))
		for i := range jobs {
			var err error
			if answers[i], err = s.enqueue(ctx, tx, actor, ids[i], salts[16*i:16*i+16], &jobs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// CheckKeys looks for the first of jobs that Enqueue would refuse as things stand, because its key belongs to a job
// with another payload. It returns its index and the ConflictError; an index of -1 with an error means that the
// looking failed.
func (s *Service) CheckKeys(ctx context.Context, jobs []Enqueue) (first int, err error) {
	first = -1
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
		for i := range jobs {
			if jobs[i].Key == "" {
				continue
			}
			_, _, err := existing(ctx, tx, "", &Enqueue{Queue: jobs[i].Queue, Key: jobs[i].Key, Payload: jobs[i].Payload})
			if errors.Is(err, ErrConflict) {
				first = i
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return first, err
}

func (s *Service) enqueue(ctx context.Context, tx *ledger.Tx, actor string, id ledger.JobID, salt []byte, e *Enqueue) (Enqueued, error) {
	if e.ID != "" || e.Key != "" {
		old, ok, err := existing(ctx, tx, id, e)
		if err != nil || ok {
			return Enqueued{Job: old, Existing: true}, err
		}
	}
	runAt := e.RunAt.UTC().Truncate(time.Microsecond)
	if runAt.Before(tx.Now()) {
		runAt = tx.Now()
	}
	maxAttempts := e.MaxAttempts
	if maxAttempts == 0 {
		maxAttempts = projection.DefaultMaxAttempts
	}
	j, err := record(ctx, tx, fact{actor: actor, job: projection.Job{ID: id}, body: &ledger.Enqueued{Queue: e.Queue, Priority: e.Priority,
		RunAt: runAt, MaxAttempts: maxAttempts, MaxRuntime: e.MaxRuntime, Version: e.Version, Requires: e.Requires, Key: e.Key,
		Tags: e.Tags, PayloadSHA256: ledger.Digest(salt, e.Payload), PayloadBytes: int64(len(e.Payload))}})
	if err != nil {
		return Enqueued{}, err
	}
	j.Payload = e.Payload
	return Enqueued{Job: j}, tx.PutBody(j.N, salt, e.Payload)
}

// existing finds the job that e means, if it is there, and compares what makes it the same.
func existing(ctx context.Context, tx *ledger.Tx, id ledger.JobID, e *Enqueue) (j projection.Job, ok bool, err error) {
	what := fmt.Sprintf("id %s", id)
	if e.ID != "" {
		j, ok, err = projection.Get(ctx, tx, id)
	}
	if e.Key != "" && !ok && err == nil {
		what = fmt.Sprintf("key %q", e.Key)
		j, ok, err = projection.GetByKey(ctx, tx, e.Queue, e.Key)
	}
	if err != nil || !ok {
		return j, ok, err
	}
	if err := projection.LoadBodies(ctx, tx, &j); err != nil {
		return j, true, err
	}
	switch {
	case j.Erased:
		return j, true, &ConflictError{"enqueue", j.ID, what + " belongs to it, and its payload was erased"}
	case j.Queue != e.Queue:
		return j, true, &ConflictError{"enqueue", j.ID, what + " belongs to it, in the queue " + j.Queue}
	case j.Key != e.Key:
		return j, true, &ConflictError{"enqueue", j.ID, what + " belongs to it, with another key"}
	case string(j.Payload) != string(e.Payload):
		return j, true, &ConflictError{"enqueue", j.ID, what + " belongs to it, with another payload"}
	}
	return j, true, nil
}

// Do carries out c on the job with this id and returns the job as it is then; with a RefusedError too.
//
// Errors: ErrNoJob; RefusedError (ErrLeaseLost, ErrCancelled or ErrConflict) for a token that is not live;
// ConflictError; InvalidError; ledger.ErrUnknown, after which sending the same command again is safe.
func (s *Service) Do(ctx context.Context, actor string, id ledger.JobID, c Command) (projection.Job, error) {
	if err := CheckActor(actor); err != nil {
		return projection.Job{}, err
	}
	if err := check(c); err != nil {
		return projection.Job{}, err
	}
	if checkText("job", string(id), MaxKey) != nil { // which not every database can be asked for
		return projection.Job{}, fmt.Errorf("%w: %.80q", ErrNoJob, id)
	}
	var j projection.Job
	var refused error
	err := s.Store.Write(ctx, func(tx *ledger.Tx) error {
		refused = nil
		var ok bool
		var err error
		if j, ok, err = projection.Get(ctx, tx, id); err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: %s", ErrNoJob, id)
		}
		j, err = carryOut(ctx, tx, actor, j, c)
		return keepRefusal(err, &refused)
	})
	if err != nil {
		return projection.Job{}, err
	}
	return j, refused
}

// keepRefusal lets the transaction commit what a refusal has recorded: the error is told afterwards.
func keepRefusal(err error, refused *error) error {
	var r *RefusedError
	if errors.As(err, &r) {
		*refused = err
		return nil
	}
	return err
}
