package commands

import (
	"errors"
	"fmt"

	"jobledger/ledger/event"
	"jobledger/projection"
)

// Errors that callers branch on.
var (
	ErrLeaseLost = errors.New("lease lost")        // the token is not the live one; stop working
	ErrCancelled = errors.New("job was cancelled") // stop working
	ErrConflict  = errors.New("conflict")          // state, key or content does not permit it
	ErrNoJob     = errors.New("no such job")
	ErrNoStore   = errors.New("the service has no store")
	ErrInvalid   = errors.New("invalid") // the input is outside of what is allowed; nothing was written
)

// Errors of decide that do not leave this package.
var (
	errNoChange      = errors.New("already so")         // the job is as asked for; no event
	errTokenNotLive  = errors.New("token is not live")  // decideStale has the answer
	errEvidenceStale = errors.New("nothing to reclaim") // the claim is not as the sweeper saw it
)

// RefusedError is a write with a token that is not the live one. The ledger records it as refused. It unwraps
// to ErrLeaseLost, ErrCancelled or ErrConflict.
type RefusedError struct {
	Command string
	Job     event.JobID
	Token   string
	Why     string
	Err     error
}

// Error says what was refused and why.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s of job %s refused: %s", e.Command, e.Job, e.Why)
}

// Unwrap returns the sentinel.
func (e *RefusedError) Unwrap() error { return e.Err }

// UnknownClaimError means that jobs may have been claimed: the connection broke at the commit, and the ledger
// could not be asked afterwards, or showed no claim yet. A ClaimRequest with these Tokens, sent later, gets
// the claims or makes them. It unwraps to an ErrUnknown of the ledger.
type UnknownClaimError struct {
	Tokens []string
	Err    error
}

// Error returns the text of the cause.
func (e *UnknownClaimError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnknownClaimError) Unwrap() error { return e.Err }

// ConflictError says which state, key or content does not permit a command. It unwraps to ErrConflict.
type ConflictError struct {
	Command string
	Job     event.JobID
	Why     string
}

// Error says what conflicts with what.
func (e *ConflictError) Error() string { return fmt.Sprintf("%s job %s: %s", e.Command, e.Job, e.Why) }

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// MovedOnError means that a job is not as the caller has seen it any more, so that nothing was changed. It
// unwraps to ErrConflict.
type MovedOnError struct {
	Job  projection.Job // as it is
	Seen int64          // the seq that the caller has seen
}

// Error says what the job is.
func (e *MovedOnError) Error() string {
	return fmt.Sprintf("job %s is %s meanwhile (seq %d, you saw %d): nothing was changed", e.Job.ID, e.Job.State,
		e.Job.Seq, e.Seen)
}

// Unwrap returns ErrConflict.
func (e *MovedOnError) Unwrap() error { return ErrConflict }

// InvalidError reports input that is not allowed. It unwraps to ErrInvalid.
type InvalidError struct {
	Field   string // as in JSON: "queue", "max_attempts"; a colon and a part of the field may follow
	Got     string // "": the field is missing
	Allowed string
}

// Error says what is allowed.
func (e *InvalidError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("%s is missing; allowed: %s", e.Field, e.Allowed)
	}
	return fmt.Sprintf("%s %s is not allowed; allowed: %s", e.Field, e.Got, e.Allowed)
}

// Unwrap returns ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }
