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

// Missing returns the error noJob of an id that the ledger does not have, with where its job is.
func Missing(ctx context.Context, tx *ledger.Tx, id event.JobID, noJob error) error {
	p, err := Where(ctx, tx, id)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s%s", noJob, id, p)
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
