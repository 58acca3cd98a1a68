package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
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

// Step is one command on a job that the caller holds in memory. The compare-and-swap catches one that is out of
// date, and only then is the row read again.
type Step struct {
	Job     projection.Job
	Command Command
}

// Outcome is what became of a Step.
type Outcome struct {
	Job projection.Job
	Err error // as Do's; one refused step leaves its neighbours alone
}

// ClaimRequest says for whom to claim what.
type ClaimRequest struct {
	Queues       []string
	Version      string
	Capabilities []string
	Worker       ledger.Worker
	Lease        time.Duration // default 1m
	MaxRuntime   time.Duration // the worker's own limit for each job; 0: the job's alone
	Limit        int           // default 1
}

func (r *ClaimRequest) check() error {
	if r.Lease == 0 {
		r.Lease = DefaultLease
	}
	if r.Limit == 0 {
		r.Limit = 1
	}
	if len(r.Queues) == 0 {
		return CheckQueue("")
	}
	for _, q := range r.Queues {
		if err := CheckQueue(q); err != nil {
			return err
		}
	}
	for _, label := range r.Capabilities {
		if err := CheckLabel("capability", label); err != nil {
			return err
		}
	}
	if r.Version != "" {
		if err := CheckLabel("version", r.Version); err != nil {
			return err
		}
	}
	if err := checkWorker(r.Worker); err != nil {
		return err
	}
	if err := checkRuntime(r.MaxRuntime); err != nil {
		return err
	}
	if r.Limit < 0 || r.Limit > 1000 {
		return &InvalidError{"limit", fmt.Sprint(r.Limit), "1 to 1000"}
	}
	return CheckLease(r.Lease)
}

// Claim takes up to r.Limit jobs for r.Worker, each with a fresh token and its payload. None ready: no error.
func (s *Service) Claim(ctx context.Context, r ClaimRequest) ([]projection.Job, error) {
	_, jobs, err := s.Turn(ctx, "worker:"+r.Worker.Name, nil, r)
	return jobs, err
}

// All carries out steps in one transaction, each with its own outcome: a heartbeat for all jobs of a process, say.
func (s *Service) All(ctx context.Context, actor string, steps []Step) ([]Outcome, error) {
	outcomes, _, err := s.turn(ctx, actor, steps, ClaimRequest{})
	return outcomes, err
}

// Turn carries out steps and then claims what r asks for, in one transaction: a worker that finishes jobs and wants
// the next ones pays for one commit.
func (s *Service) Turn(ctx context.Context, actor string, steps []Step, r ClaimRequest) ([]Outcome, []projection.Job, error) {
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	return s.turn(ctx, actor, steps, r)
}

// turn is together, unless that fails because of what the ledger holds: then one row is to blame, and each step is
// carried out by itself, so that a damaged job does not cost its neighbours their leases.
func (s *Service) turn(ctx context.Context, actor string, steps []Step, r ClaimRequest) ([]Outcome, []projection.Job, error) {
	if err := CheckActor(actor); err != nil {
		return nil, nil, err
	}
	outcomes, claimed, err := s.together(ctx, actor, steps, r)
	if err == nil || len(steps) == 0 || storeFailed(err) {
		return outcomes, claimed, err
	}
	outcomes = make([]Outcome, len(steps))
	for i, step := range steps {
		one, _, err := s.together(ctx, actor, []Step{step}, ClaimRequest{})
		if storeFailed(err) {
			return nil, nil, err // what has been carried out may be sent again
		}
		if outcomes[i] = (Outcome{step.Job, err}); err == nil {
			outcomes[i] = one[0]
		}
	}
	_, claimed, err = s.together(ctx, actor, nil, r)
	if storeFailed(err) {
		return nil, nil, err
	}
	return outcomes, claimed, nil // the steps are done; what is wrong with the claim, the next one says
}

// together steps over a job that cannot be claimed because what the ledger holds of it contradicts itself: it must not
// keep the others from being claimed.
func (s *Service) together(ctx context.Context, actor string, steps []Step, r ClaimRequest) ([]Outcome, []projection.Job, error) {
	var first *projection.DamagedJobError
	var except []ledger.JobID
	for {
		outcomes, claimed, err := s.once(ctx, actor, steps, r, except)
		damaged, ok := errors.AsType[*projection.DamagedJobError](err)
		switch {
		case ok && damaged.Job != "" && len(except) < maxDamaged && !slices.Contains(except, damaged.Job):
			except = append(except, damaged.Job)
			if first == nil {
				first = damaged
			}
		case err == nil && first != nil && len(claimed) == 0 && len(steps) == 0:
			return nil, nil, first
		default:
			return outcomes, claimed, err
		}
	}
}

// maxDamaged is how many jobs a claim steps over.
const maxDamaged = 100

func (s *Service) once(ctx context.Context, actor string, steps []Step, r ClaimRequest, except []ledger.JobID) ([]Outcome, []projection.Job, error) {
	tokens := make([]string, r.Limit)
	for i := range tokens {
		tokens[i] = s.newID()
	}
	var outcomes []Outcome
	var claimed []projection.Job
	err := s.Store.Write(ctx, func(tx *ledger.Tx) error {
		outcomes, claimed = make([]Outcome, len(steps)), nil
		for i, step := range steps {
			j, err := step.Job, check(step.Command)
			if err == nil {
				j, err = carryOut(ctx, tx, actor, step.Job, step.Command)
			}
			if err != nil && !isVerdict(err) {
				return err
			}
			outcomes[i] = Outcome{j, err}
		}
		if r.Limit == 0 {
			return nil
		}
		found, err := projection.Next(ctx, tx, projection.Want{Queues: r.Queues, Version: r.Version, Capabilities: r.Capabilities, Except: except}, tx.Now(), r.Limit)
		if err != nil {
			return err
		}
		claimed = found
		for i, j := range found {
			if claimed[i], err = carryOut(ctx, tx, actor, j, Claim{Token: tokens[i], Worker: r.Worker, Lease: r.Lease, MaxRuntime: r.MaxRuntime}); err != nil {
				return cannotClaim(j, err)
			}
		}
		return nil
	})
	if errors.Is(err, ledger.ErrUnknown) && len(tokens) > 0 {
		// Nobody knows whether these claims are durable, but the ledger does.
		if mine, lookErr := s.lookUp(context.WithoutCancel(ctx), r.Worker, tokens); lookErr == nil && len(mine) > 0 {
			return outcomes, mine, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return outcomes, claimed, nil
}

// cannotClaim says that the ledger is damaged where j stands: nothing else can be in the way of claiming a job that was
// found just now, in the same transaction.
func cannotClaim(j projection.Job, err error) error {
	if storeFailed(err) {
		return err
	}
	return &projection.DamagedJobError{Job: j.ID, Err: fmt.Errorf("cannot be claimed: %w", err)}
}

// isVerdict reports whether err is the answer to one step rather than a failure of the transaction.
func isVerdict(err error) bool {
	return errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrCancelled) || errors.Is(err, ErrConflict) || errors.Is(err, ErrNoJob) || errors.Is(err, ErrInvalid)
}

// storeFailed reports whether err says that the ledger or the caller was not ready, rather than that something in it
// is wrong.
func storeFailed(err error) bool {
	for _, target := range []error{ledger.ErrBusy, ledger.ErrFull, ledger.ErrIO, ledger.ErrReadOnly, ledger.ErrUnknown, ledger.ErrReplaced, ledger.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// lookUp returns the jobs that w holds with one of these tokens.
func (s *Service) lookUp(ctx context.Context, w ledger.Worker, tokens []string) (mine []projection.Job, err error) {
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
		held, err := projection.Held(ctx, tx, w)
		if err != nil {
			return err
		}
		for _, j := range held {
			for _, token := range tokens {
				if j.Token != token {
					continue
				}
				if err := projection.LoadBodies(ctx, tx, &j); err != nil {
					return err
				}
				mine = append(mine, j)
			}
		}
		return nil
	})
	return mine, err
}

// Ready reports whether a claim would find a job, and if not, when one that fits is scheduled (zero: none is).
// It only reads, so that waiting for work never takes the write lock.
func (s *Service) Ready(ctx context.Context, r ClaimRequest) (ready bool, next time.Time, err error) {
	if err := r.check(); err != nil {
		return false, next, err
	}
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
		var err error
		next, err = projection.NextRunAt(ctx, tx, projection.Want{Queues: r.Queues, Version: r.Version, Capabilities: r.Capabilities})
		ready = !next.IsZero() && !next.After(tx.Now())
		return err
	})
	return ready, next, err
}
