package query

import (
	"context"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/fingerprint"
)

// IsFingerprint reports whether text is of the form of a [FailureGroup.ID].
func IsFingerprint(text string) bool { return fingerprint.Is(text) }

// Share returns the share of g in the attempts of its queue that ended.
func (g *FailureGroup) Share() float64 {
	return float64(g.Attempts) / float64(max(g.Ended, g.Attempts, 1))
}

// ofGroup is an attempt and its group.
type ofGroup struct {
	pos   int64
	group *FailureGroup
}

// lastFailed is the last attempt of each job within a window, by its number.
type lastFailed map[int64]ofGroup

// addJobs adds to groups what became of their jobs, and how many attempts of their queues ended. last is of
// all groups.
func (q Failures) addJobs(ctx context.Context, tx *ledger.Tx, groups []*FailureGroup, last lastFailed) error {
	ended, err := q.filter().Ended(ctx, tx)
	if err != nil {
		return err
	}
	all := make(map[int64]bool)
	for _, g := range groups {
		maps.Copy(all, g.Jobs)
	}
	then := q.At
	if then == (projection.Moment{}) {
		then = projection.Now(q.To.At)
	}
	jobs, err := projection.JobsAt(ctx, tx, slices.Sorted(maps.Keys(all)), then)
	if err != nil {
		return err
	}
	for _, g := range groups {
		g.Ended, g.States = ended[g.Queue], make(map[event.State]int64)
		for n := range g.Jobs {
			if j, found := jobs[n]; found {
				g.States[j.State]++
			}
		}
	}
	var failed []int64
	for n, j := range jobs {
		if j.State == event.FailedState {
			failed = append(failed, n)
		}
	}
	slices.Sort(failed)
	ends, err := projection.LastFailures(ctx, tx, failed, q.At.Pos)
	for n, end := range ends {
		if end.Pos == last[n].pos {
			last[n].group.LastFailed++
		}
	}
	return err
}
