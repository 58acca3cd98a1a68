package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/ledger"
	"jobledger/projection"
)

// Enqueue asks for a new job. The zero value of a field is its default.
type Enqueue struct {
	ID          string // a ULID; "": a fresh one. Sent again, it gives the same job
	Queue       string // required: 1–64 of a–z 0–9 . _ -
	Payload     []byte // any bytes, up to 1 MiB
	Key         string // the caller's own name, unique per queue for ever; "": none
	Priority    int    // −100…100, higher is claimed first
	RunAt       time.Time
	MaxAttempts int           // 1…1,000,000; default 5
	MaxRuntime  time.Duration // 0: no limit
	Version     string        // only workers of this version; "": any
	Requires    []string      // only workers that have all of these capabilities
	Tags        map[string]string
}

// Check returns an InvalidError that names the first field outside of what is allowed.
func (e *Enqueue) Check() error {
	if err := CheckQueue(e.Queue); err != nil {
		return err
	}
	if err := checkText("key", e.Key, MaxKey); err != nil {
		return err
	}
	switch {
	case len(e.Payload) > MaxPayload:
		return &InvalidError{"payload", fmt.Sprintf("of %d bytes", len(e.Payload)), "up to 1,048,576 bytes"}
	case e.Priority < -MaxPriority || e.Priority > MaxPriority:
		return &InvalidError{"priority", fmt.Sprint(e.Priority), "-100 to 100"}
	case e.MaxAttempts < 0 || e.MaxAttempts > MaxMaxAttempts:
		return &InvalidError{"max_attempts", fmt.Sprint(e.MaxAttempts), "1 to 1000000"}
	case !e.RunAt.IsZero() && (e.RunAt.UTC().Year() < 1971 || e.RunAt.UTC().Year() > 9999):
		return &InvalidError{"run_at", ledger.FormatTime(e.RunAt), "the years 1971 to 9999"}
	case len(e.Tags) > MaxTags:
		return &InvalidError{"tags", fmt.Sprintf("of %d", len(e.Tags)), "up to 32 tags"}
	case len(e.Requires) > MaxLabels:
		return &InvalidError{"requires", fmt.Sprintf("of %d labels", len(e.Requires)), "up to 16 labels"}
	}
	if e.Version != "" {
		if err := CheckLabel("version", e.Version); err != nil {
			return err
		}
	}
	for _, label := range e.Requires {
		if err := CheckLabel("requires", label); err != nil {
			return err
		}
	}
	if err := checkTags(e.Tags); err != nil {
		return err
	}
	return checkRuntime(e.MaxRuntime)
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
