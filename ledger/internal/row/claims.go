package row

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"jobledger/ledger/event"
)

// The row of an event has the id of its job only in enqueued, and the token of its claim only in the event
// that begins the claim. A reader that goes along the events knows these of the others.

// Latest remembers, per job that a read has come across, its id and its latest claim.
type Latest map[int64]LatestClaim

// LatestClaim is the id of a job and its latest claim.
type LatestClaim struct {
	ID      event.JobID
	Attempt int
	Token   string
}

// MaxClaims bounds what a long read keeps; beyond it, what is needed again is looked up again.
const MaxClaims = 100_000

// Complete sets the job and the token of e, which r was decoded into. lookUp finds the id of the job n, and
// its last claim before pos.
func (known Latest) Complete(ctx context.Context, r *Row, e *event.Event,
	lookUp func(ctx context.Context, n, pos int64) (LatestClaim, error)) (err error) {
	if e.N == 0 {
		return nil
	}
	c, ok := known[e.N]
	if e.Kind() == event.KindEnqueued {
		c, ok = LatestClaim{ID: event.JobID(r.ULID)}, true
	}
	filteredOut := e.Attempt > c.Attempt && e.Kind().TokenOfClaim() // its claim was
	if !ok || filteredOut {
		if c, err = lookUp(ctx, e.N, e.Pos); err != nil {
			return err
		}
	}
	switch k := e.Kind(); {
	case k.StoresToken():
		if e.Token = r.ULID; k == event.KindClaimed {
			c.Attempt, c.Token = e.Attempt, e.Token
		}
	case k.TokenOfClaim() && e.Attempt != 0 && e.Attempt == c.Attempt:
		e.Token = c.Token
	}
	e.Job = c.ID
	if e.To.Final() || len(known) >= MaxClaims {
		delete(known, e.N)
	} else {
		known[e.N] = c
	}
	return nil
}

// Claims are the jobs that a scan has come across: their ids, and the tokens of all of their claims.
type Claims map[int64]*jobClaims

type jobClaims struct {
	id     event.JobID
	tokens map[int]string // by attempt
}

func (known Claims) of(n int64) *jobClaims {
	j := known[n]
	if j == nil {
		j = &jobClaims{tokens: make(map[int]string, 1)}
		known[n] = j
	}
	return j
}

// Each runs a query, and calls fn for each of its rows.
type Each func(ctx context.Context, fn func(row []driver.Value) bool, query string, args ...any) error

// Complete sets the job and the token of each of some events in a row. wrong is an event whose job does not
// exist.
func (known Claims) Complete(ctx context.Context, each Each, events []*event.Event) (wrong *event.Event,
	err error) {
	if len(known) > MaxClaims {
		clear(known)
	}
	var missing []any
	asked := make(map[int64]bool)
	for _, e := range events {
		if e.N == 0 {
			continue
		}
		switch e.Kind() {
		case event.KindEnqueued:
			known.of(e.N).id = e.Job
			continue
		case event.KindClaimed:
			known.of(e.N).tokens[e.Attempt] = e.Token
		}
		j := known[e.N]
		needs := j == nil || j.id == ""
		if !needs && e.Attempt != 0 && e.Kind().TokenOfClaim() {
			_, ok := j.tokens[e.Attempt]
			needs = !ok
		}
		if needs && !asked[e.N] {
			asked[e.N] = true
			missing = append(missing, e.N)
		}
	}
	if err := known.lookUp(ctx, each, missing); err != nil {
		return nil, err
	}
	for _, e := range events {
		if e.N == 0 {
			continue
		}
		j := known[e.N]
		if j == nil || j.id == "" {
			return e, fmt.Errorf("%w: there is no job number %d", event.ErrDamaged, e.N)
		}
		e.Job = j.id
		if e.Attempt != 0 && e.Kind().TokenOfClaim() {
			e.Token = j.tokens[e.Attempt]
		}
	}
	for _, e := range events { // the next ones need these no more, or seldom
		if e.To.Final() {
			delete(known, e.N)
		}
	}
	return nil, nil
}

// lookUpAtOnce is how many jobs one query looks up.
const lookUpAtOnce = 64

var claimsOfJobs = event.SQL(`SELECT job, kind, attempt, ulid FROM events WHERE job IN (?` +
	strings.Repeat(",?", lookUpAtOnce-1) + `) AND seq > 0 AND kind IN ({enqueued}, {claimed})`)

// lookUp adds the ids of jobs and the tokens of their claims.
func (known Claims) lookUp(ctx context.Context, each Each, jobs []any) error {
	for len(jobs) > 0 {
		chunk := append([]any(nil), jobs[:min(lookUpAtOnce, len(jobs))]...)
		jobs = jobs[len(chunk):]
		for len(chunk) < lookUpAtOnce {
			chunk = append(chunk, chunk[0])
		}
		err := each(ctx, func(values []driver.Value) bool {
			n, _ := values[0].(int64)
			kind, _ := values[1].(int64)
			attempt, _ := values[2].(int64)
			ulid, ok := values[3].(string)
			if !ok {
				text, _ := values[3].([]byte)
				ulid = string(text)
			}
			if j := known.of(n); event.Kind(kind) == event.KindEnqueued {
				j.id = event.JobID(ulid)
			} else {
				j.tokens[int(attempt)] = ulid
			}
			return true
		}, claimsOfJobs, chunk...)
		if err != nil {
			return err
		}
	}
	return nil
}
