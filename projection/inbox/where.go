package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Place is where a job is that was asked for and that the ledger does not have.
type Place struct {
	Waits bool // in the inbox: it comes
	text  string
}

// String says where it is, to follow "no such job: ID"; "" if it is in no table.
func (p Place) String() string { return p.text }

// MissingError is about a job that the ledger does not have, and says where it is.
type MissingError struct {
	Place
	id    event.JobID
	noJob error
}

func (e *MissingError) Error() string { return fmt.Sprintf("%v: %s%s", e.noJob, e.id, e.Place) }

// Unwrap returns the error that there is no such job.
func (e *MissingError) Unwrap() error { return e.noJob }

// Missing returns the error noJob of an id that the ledger does not have, as a MissingError.
func Missing(ctx context.Context, tx *ledger.Tx, id event.JobID, noJob error) error {
	p, err := Where(ctx, tx, id)
	if err != nil {
		return err
	}
	return &MissingError{p, id, noJob}
}

// Where returns where the job with this id is, which the ledger does not have.
func Where(ctx context.Context, tx *ledger.Tx, id event.JobID) (p Place, err error) {
	id = event.JobID(strings.ToUpper(string(id)))
	r, ok, err := Find(ctx, tx, id)
	if ok && err == nil {
		return Place{true, fmt.Sprintf(" is in the inbox since %s; the next claim of a worker or sweep moves it",
			r.At().Format(time.RFC3339))}, nil
	}
	refused, ok, err := FindRefused(ctx, tx, id)
	if ok && err == nil {
		p.text = fmt.Sprintf(" was refused at %s and is kept in the inbox: %s",
			refused.RefusedAt().Format(time.RFC3339), refused.Why)
	}
	return p, err
}
