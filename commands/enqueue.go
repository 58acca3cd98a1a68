package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands/internal/check"
	"jobledger/commands/internal/intake"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
)

// Enqueue asks for a new job. The zero value of a field is its default.
type Enqueue struct {
	ID      string // a ULID; "": a fresh one. Enqueuing it again gives the same job
	Queue   string // required: 1–64 of a–z 0–9 . _ -
	Payload []byte // any bytes, up to 1 MiB
	Key     string // the idempotency key, unique per queue for ever; "": none
	// how long Key is the job's own: event.WhileQueued or WhileUnfinished; "": for ever
	UniqueWhile string
	// with UniqueWhile, where another job has Key: IgnoreDuplicate, which is the default, ReplaceDuplicate or
	// RefreshDuplicate
	OnDuplicate string
	Priority    int               // −100…100; higher is claimed first
	RunAt       time.Time         // not claimed before; default, and earliest: now
	MaxAttempts int               // 1…1,000,000; default that of the queue, or 5
	MaxRuntime  time.Duration     // default that of the queue, or no limit
	Version     string            // only workers of this version; "": any
	Requires    []string          // only workers that have all of these capabilities
	Tags        map[string]string // up to 32
	// the group of the job: groups of a queue are served in turn; "": none
	Group string
	// how long it waits after failures; default that of the queue, or event.DefaultBackoff
	Backoff event.Backoff

	// what the payload is: event.FormArgv is a command as package argv writes it, for a queue of
	// Service.SetCommands; the job then requires event.LabelArgv too. "": what the worker makes of it
	Form string

	// the jobs that this one waits for: up to 1,000. The job is cancelled if one of them cannot end as asked
	After  []Dependency
	Before []Dependency // the blocked jobs that are to wait for this one too: up to 16
	Hold   bool         // it waits until Unblock lifts the hold
}

// Check returns an InvalidError for the first field outside of what is allowed.
func (e *Enqueue) Check() error {
	return cmp.Or(CheckQueue(e.Queue), CheckText("key", e.Key, MaxKey),
		invalid(cmp.Or(check.Unique(e.Key, e.UniqueWhile, e.OnDuplicate), check.Group(e.Group))),
		CheckSize("payload", e.Payload), invalid(cmp.Or(check.Priority(e.Priority),
			check.Attempts(e.MaxAttempts), check.RunAt(e.RunAt), check.Requires(e.Requires),
			check.Optional("version", e.Version), check.Tags(e.Tags),
			e.checkDependencies(), check.Backoff(e.Backoff), check.Runtime(e.MaxRuntime),
			check.Form(e.Form, e.Payload))))
}

// Enqueued is the answer to one Enqueue.
type Enqueued struct {
	projection.Job
	// Existing: the job was there before, with the same id, or with the same queue and key. Its payload is the
	// same, unless its key is not for ever.
	Existing bool
	Replaced bool // it was there before, and its payload is now the one asked for
	Left     bool // it was there before and has begun: with RefreshDuplicate it keeps its own payload
}

// Enqueue appends new jobs, all or none. A job whose id or key exists already with the same payload is
// returned as it is, and no second job is made. A job may wait for those before it, by the ids they ask for.
// Errors: InvalidError; ConflictError where the payload differs or was erased.
func (s *Service) Enqueue(ctx context.Context, actor string, jobs ...Enqueue) ([]Enqueued, error) {
	if err := CheckActor(actor); err != nil {
		return nil, err
	}
	salts := make([]byte, 16*len(jobs))
	s.fillSalts(salts)
	asked := make([]newJob, len(jobs))
	for i := range jobs {
		var err error
		if asked[i], err = s.newJob(&jobs[i], salts[16*i:16*i+16]); err != nil {
			if len(jobs) > 1 {
				err = fmt.Errorf("job %d of %d: %w", i+1, len(jobs), err)
			}
			return nil, err
		}
	}
	archived, err := s.archived(ctx, asked)
	if err != nil {
		return nil, err
	}
	var answers []Enqueued
	err = s.write(ctx, func(tx *ledger.Tx) error {
		answers = make([]Enqueued, len(jobs))
		same := make(map[event.JobID]event.JobID)
		for i, n := range asked {
			var err error
			n.same, n.archived = same, archived
			if answers[i], err = enqueue(ctx, tx, actor, n); err != nil {
				return err
			}
			if answers[i].ID != n.id {
				same[n.id] = answers[i].ID
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// takeIn moves rows of the inbox into the ledger, where there may be some: see intake.Mover.
func (s *Service) takeIn(ctx context.Context, all bool) error {
	return intake.Mover[Dependency]{Store: s.Store, StoreFailed: StoreFailed,
		Refused: func(err error) bool { return isAny(err, ErrConflict, ErrInvalid, ErrNoJob) },
		Enqueue: func(ctx context.Context, tx *ledger.Tx, asked intake.Asked[Dependency]) (event.JobID, error) {
			job, salt := Enqueue(asked.Job), make([]byte, 16)
			s.fillSalts(salt)
			n, err := s.newJob(&job, salt)
			if err != nil {
				return "", err
			}
			if n.same = asked.Same; asked.New {
				job.ID = "" // no job has this one
			}
			j, err := enqueue(ctx, tx, asked.Actor, n)
			return j.ID, err
		}}.Move(ctx, all)
}

// newJob is the action of enqueuing one job, with what is drawn at random for it.
type newJob struct {
	*Enqueue
	id       event.JobID
	salt     []byte
	defaults defaults.Spec // of the queue
	// by the id asked for: jobs of the same call that existed, with another id
	same map[event.JobID]event.JobID
	// jobs that have left the ledger, and how they ended
	archived map[event.JobID]event.State
}

func (newJob) name() string { return "enqueue" }

// newJob checks e and gives it an id. The id that e names may be in either case.
func (s *Service) newJob(e *Enqueue, salt []byte) (newJob, error) {
	if err := e.Check(); err != nil {
		return newJob{}, err
	}
	if e.ID == "" {
		return newJob{Enqueue: e, id: event.JobID(s.newID()), salt: salt}, nil
	}
	id, err := ulid.ParseStrict(e.ID)
	if err != nil {
		return newJob{}, &InvalidError{"id", fmt.Sprintf("%.80q", e.ID), "a ULID"}
	}
	return newJob{Enqueue: e, id: event.JobID(id.String()), salt: salt}, nil
}

func enqueue(ctx context.Context, tx *ledger.Tx, actor string, n newJob) (Enqueued, error) {
	j, err := n.find(ctx, tx)
	if err != nil {
		return Enqueued{}, err
	}
	if gone, err := n.findPast(ctx, tx, j); err != nil || gone.ID != "" {
		return Enqueued{Job: gone, Existing: true}, err
	}
	if n.defaults, err = queueDefaults(ctx, tx, n.Queue); err != nil {
		return Enqueued{}, err
	}
	f, err := n.decide(j, tx.Now())
	if errors.Is(err, errNoChange) || errors.Is(err, errLeft) {
		return Enqueued{Job: j, Existing: true, Left: errors.Is(err, errLeft)}, nil
	}
	if err != nil {
		return Enqueued{}, err
	}
	f.Actor = actor
	if f.Job.State != 0 {
		j, err = journal.Record(ctx, tx, f)
		return Enqueued{Job: j, Existing: true, Replaced: true}, err
	}
	broken, err := n.depend(ctx, tx, &f)
	if err != nil {
		return Enqueued{}, err
	}
	if j, err = journal.Record(ctx, tx, f); err == nil && broken != "" {
		j, err = journal.Record(ctx, tx, journal.Fact{Actor: actor, Job: j,
			Body: &event.Cancelled{Because: broken}})
	}
	return Enqueued{Job: j}, err
}

// decide applies the rules of enqueuing, where j is what find found: errNoChange if that is the same job. The
// fact may be that j gets another payload.
func (n newJob) decide(j projection.Job, at time.Time) (journal.Fact, error) {
	switch {
	case j.State != 0 && n.UniqueWhile != "" && (n.ID == "" || j.ID != n.id):
		return n.duplicate(j)
	case j.State != 0:
		return journal.Fact{}, n.compare(j)
	}
	d := n.defaults
	if err := invalid(check.FormOf(n.Queue, n.Form, d.Commands)); err != nil {
		return journal.Fact{}, err
	}
	body := &event.Enqueued{Queue: n.Queue, Priority: n.Priority,
		RunAt: n.RunAt.UTC().Truncate(time.Microsecond), MaxAttempts: cmp.Or(n.MaxAttempts, d.MaxAttempts,
			projection.DefaultMaxAttempts),
		MaxRuntime: cmp.Or(n.MaxRuntime, d.MaxRuntime), Backoff: cmp.Or(n.Backoff, d.Backoff),
		Version: n.Version, Requires: check.Labelled(n.Requires, n.Form), Key: n.Key, UniqueWhile: n.UniqueWhile,
		Tags: n.Tags, Group: n.Group, Form: n.Form,
		PayloadSHA256: ledger.Digest(n.salt, n.Payload), PayloadBytes: int64(len(n.Payload))}
	if body.RunAt.Before(at) {
		body.RunAt = at
	}
	return journal.Fact{Job: j, Body: body, Salt: n.salt, Content: n.Payload}, nil
}
