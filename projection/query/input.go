package query

import "fmt"

// InputError says that a question cannot be asked so. The command line prints it with the flag that stands
// for Field, an answer over HTTP has Field as it is.
type InputError struct {
	Field  string // from, to, at, queue, …
	Reason string // what is wrong, as a sentence without a full stop
	Hint   string // what is allowed; "": Reason says it
}

// Error returns the field and the reason.
func (e *InputError) Error() string { return e.Field + ": " + e.Reason }

// badInput returns an InputError.
func badInput(field, format string, args ...any) *InputError {
	return &InputError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
