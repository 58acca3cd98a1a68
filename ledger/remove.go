package ledger

import (
	"context"
	"strings"

	"jobledger/ledger/event"
)

// removedAtOnce is how many jobs one statement of RemoveJobs names.
const removedAtOnce = 64

var (
	jobsNamed    = `job IN (?` + strings.Repeat(",?", removedAtOnce-1) + `)`
	bodiesOfJobs = event.SQL(` FROM bodies WHERE pos IN
(SELECT pos FROM events WHERE ` + jobsNamed + ` AND kind IN ({kinds:withBody}))`)
)

// Gone counts what RemoveJobs deleted, and the bodies that it kept.
type Gone struct {
	Events, Bodies, BodyBytes, Kept int64
}

// RemoveJobs deletes all events of jobs, by their numbers, and their payloads and results unless keepBodies.
// The database refuses it unless every one of these events is in a segment that an archived event names. What
// they leave free is not overwritten.
func (tx *Tx) RemoveJobs(ctx context.Context, jobs []int64, keepBodies bool) (gone Gone, err error) {
	for len(jobs) > 0 {
		some := jobs[:min(removedAtOnce, len(jobs))]
		jobs = jobs[len(some):]
		args := make([]any, removedAtOnce)
		for i := range args {
			args[i] = some[min(i, len(some)-1)]
		}
		var bodies, bytes int64
		_, err = tx.one(ctx, []any{&bodies, &bytes},
			`SELECT count(*), coalesce(sum(length(body)), 0)`+bodiesOfJobs, args...)
		switch {
		case err == nil && keepBodies:
			gone.Kept += bodies
			bodies, bytes = 0, 0
		case err == nil:
			_, err = tx.Exec(`DELETE`+bodiesOfJobs, args...)
		}
		if err != nil {
			return gone, err
		}
		events, err := tx.Exec(`DELETE FROM events WHERE `+jobsNamed, args...)
		if err != nil {
			return gone, err
		}
		gone.Events += events
		gone.Bodies += bodies
		gone.BodyBytes += bytes
	}
	return gone, nil
}

// sameEvents reports whether no event has left the ledger between the snapshots of tx and other.
func (tx *Tx) sameEvents(ctx context.Context, other *Tx) (bool, error) {
	here, err := tx.LastOf(ctx, event.KindRemoved)
	if err != nil {
		return false, err
	}
	there, err := other.LastOf(ctx, event.KindRemoved)
	return here == there, err
}
