package jobledgertest

import (
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Job returns a job as it is now, with payload and result.
func (l *Ledger) Job(id event.JobID) (j projection.Job) {
	l.t.Helper()
	found := false
	err := l.Store.Read(l.t.Context(), func(tx *ledger.Tx) (err error) {
		if j, found, err = projection.Get(l.t.Context(), tx, id); err == nil && found {
			err = projection.LoadBodies(l.t.Context(), tx, &j)
		}
		return err
	})
	switch {
	case err != nil:
		l.t.Fatalf("job %s: %v", id, err)
	case !found:
		l.t.Fatalf("job %s: there is no such job", id)
	}
	return j
}

// RequireState ends the test unless the job is in this state.
func (l *Ledger) RequireState(id event.JobID, want event.State) projection.Job {
	l.t.Helper()
	j := l.Job(id)
	if j.State != want {
		l.t.Fatalf("job %s is %s, want %s:\n%s", id, j.State, want, l.History(id))
	}
	return j
}

// RequireSucceeded ends the test unless the job has succeeded. It returns the job, with its result.
func (l *Ledger) RequireSucceeded(id event.JobID) projection.Job {
	l.t.Helper()
	return l.RequireState(id, event.SucceededState)
}

// RequireFailed ends the test unless the job has failed for good, the last time with this error code.
func (l *Ledger) RequireFailed(id event.JobID, code string) projection.Job {
	l.t.Helper()
	j := l.RequireState(id, event.FailedState)
	if j.ErrorCode != code {
		l.t.Fatalf("job %s failed with %q, want %q:\n%s", id, j.ErrorCode, code, l.History(id))
	}
	return j
}

// RequireKinds ends the test unless these are the kinds of the job's events, separated by blanks, as in
// "enqueued claimed succeeded". Heartbeats are left out: how many there are depends on the machine.
func (l *Ledger) RequireKinds(id event.JobID, want string) {
	l.t.Helper()
	var kinds []string
	for _, e := range l.events(id) {
		if e.Kind() != event.KindHeartbeat {
			kinds = append(kinds, e.Kind().String())
		}
	}
	if got := strings.Join(kinds, " "); got != want {
		l.t.Fatalf("job %s: %s, want %s:\n%s", id, got, want, l.History(id))
	}
}

func (l *Ledger) events(id event.JobID) (list []event.Event) {
	l.t.Helper()
	n := l.Job(id).N
	err := l.Store.Read(l.t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(l.t.Context(), ledger.Filter{Job: n}) {
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		return nil
	})
	if err != nil {
		l.t.Fatalf("events of job %s: %v", id, err)
	}
	return list
}
