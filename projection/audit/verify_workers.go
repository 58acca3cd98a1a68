package audit

import (
	"context"
	"fmt"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// starts holds what a worker process announced, each time that it started.
type starts struct {
	said    []*event.WorkerStarted
	stopped int
}

// workers follows the worker processes. After a stop, nothing is known of what a process takes.
func (v *verifier) workers(e *event.Event) {
	s := v.started[e.Worker]
	b, started := e.Body.(*event.WorkerStarted)
	switch {
	case started:
		s.said = append(s.said, b)
	case s.stopped == len(s.said):
		v.at(e, FindUnfit, "the worker %s stopped, and had not started", e.Worker.Name)
	default:
		s.stopped++
	}
	v.started[e.Worker] = s
	if s.stopped == len(s.said) {
		delete(v.started, e.Worker)
	}
}

func (s starts) mayClaim(j *projection.Job, version string) bool {
	return slices.ContainsFunc(s.said, func(b *event.WorkerStarted) bool {
		fits, _ := projection.Fits(*j, version, b.Capabilities)
		return fits && slices.Contains(b.Queues, j.Queue)
	})
}

// sharedBoot is the finding about a boot id that processes in different places share, and the first of these.
type sharedBoot struct {
	finding int
	first   event.Worker
}

// placeShared completes the finding of a boot id with the first event that contradicts an earlier one.
func (v *verifier) placeShared(e *event.Event) {
	s := v.shared[e.Worker.Boot]
	switch {
	case s == nil || s.finding >= len(v.Findings) || v.Findings[s.finding].Pos != 0:
	case s.first == event.Worker{}:
		s.first = e.Worker
	case s.first.Host != e.Worker.Host || s.first.PID != e.Worker.PID:
		v.Findings[s.finding].Pos = e.Pos
	}
}

// A process that no event names did nothing: an import that was refused may have left it.
const selectSharedBoots = `SELECT boot FROM workers w
WHERE boot IN (SELECT boot FROM workers GROUP BY boot HAVING min(host) <> max(host) OR min(pid) <> max(pid))
  AND EXISTS (SELECT 1 FROM events e WHERE e.worker = w.n)
GROUP BY boot HAVING min(host) <> max(host) OR min(pid) <> max(pid) ORDER BY boot LIMIT ?`

// sharedBoots returns the boot ids that worker processes on different hosts, or with different pids, share.
func sharedBoots(ctx context.Context, tx *ledger.Tx) (boots []string, err error) {
	return bootsOf(ctx, tx, selectSharedBoots)
}

func bootsOf(ctx context.Context, tx *ledger.Tx, query string) (boots []string, err error) {
	return table.Column[string](tx.Query(ctx, query, maxFindings))
}

// presence reports the presence of processes that there are not: a worker process starts before it is
// present.
func (v *verifier) presence(ctx context.Context) error {
	strangers, err := bootsOf(ctx, v.tx, selectStrangers)
	for _, boot := range strangers {
		v.find(Finding{Code: FindPlace, Detail: fmt.Sprintf("the boot %q was seen, and is of no process", boot)})
	}
	return err
}

const selectStrangers = `SELECT boot FROM presence WHERE boot NOT IN (SELECT boot FROM workers)
ORDER BY boot LIMIT ?`
