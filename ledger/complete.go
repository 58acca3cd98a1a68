package ledger

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"
	"strings"

	"jobledger/ledger/event"
)

// Complete is Scan with the events as Events has them: with the job and the token that their rows leave out.
// It looks these up for many events at once, so it is the way to read much of a long ledger.
func (tx *Tx) Complete(ctx context.Context, what Scan) iter.Seq2[[]Scanned, error] {
	return func(yield func([]Scanned, error) bool) {
		known := make(claimsByJob)
		for batch, err := range tx.Scan(ctx, what) {
			if err == nil {
				err = tx.complete(ctx, batch, known)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// claimsByJob are the jobs that a scan has come across: their ids, and the tokens of their claims.
type claimsByJob map[int64]*jobClaims

type jobClaims struct {
	id     event.JobID
	tokens map[int]string // by attempt
}

func (c claimsByJob) of(n int64) *jobClaims {
	j := c[n]
	if j == nil {
		j = &jobClaims{tokens: make(map[int]string, 1)}
		c[n] = j
	}
	return j
}

// complete sets the job and the token of each event of a batch.
func (tx *Tx) complete(ctx context.Context, batch []Scanned, known claimsByJob) error {
	if len(known) > maxClaims {
		clear(known)
	}
	var missing []any
	asked := make(map[int64]bool)
	for i := range batch {
		e := &batch[i].Event
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
	if err := tx.lookUpClaims(ctx, missing, known); err != nil {
		return err
	}
	for i := range batch {
		e := &batch[i].Event
		if e.N == 0 {
			continue
		}
		j := known[e.N]
		if j == nil || j.id == "" {
			return &EventError{e.Pos, fmt.Errorf("%w: there is no job number %d", ErrDamaged, e.N)}
		}
		e.Job = j.id
		if e.Attempt != 0 && e.Kind().TokenOfClaim() {
			e.Token = j.tokens[e.Attempt]
		}
	}
	for i := range batch { // the next batches need these no more, or seldom
		if batch[i].To.Final() {
			delete(known, batch[i].N)
		}
	}
	return nil
}

// lookUpAtOnce is how many jobs one query looks up.
const lookUpAtOnce = 64

var claimsOfJobs = event.SQL(`SELECT job, kind, attempt, ulid FROM events WHERE job IN (?` +
	strings.Repeat(",?", lookUpAtOnce-1) + `) AND seq > 0 AND kind IN ({enqueued}, {claimed})`)

// lookUpClaims adds the ids of jobs and the tokens of their claims to known.
func (tx *Tx) lookUpClaims(ctx context.Context, jobs []any, known claimsByJob) error {
	for len(jobs) > 0 {
		chunk := append([]any(nil), jobs[:min(lookUpAtOnce, len(jobs))]...)
		jobs = jobs[len(chunk):]
		for len(chunk) < lookUpAtOnce {
			chunk = append(chunk, chunk[0])
		}
		err := tx.Each(ctx, func(row []driver.Value) bool {
			n, _ := row[0].(int64)
			kind, _ := row[1].(int64)
			attempt, _ := row[2].(int64)
			j := known.of(n)
			if ulid := Text(row[3]); event.Kind(kind) == event.KindEnqueued {
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
