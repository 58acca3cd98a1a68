// Package fault says what an error means to a caller: the exit code and its word, the status over HTTP, the
// field of a question that is wrong, and a hint at what to do. The command line and the server print it.
//
//	f := fault.Of(err)
//
// Files: fault.go has [Of] and the errors of other packages, did_you_mean.go finds what was meant.
//
// Held by TestExitCodesOfErrors of package cli, and by TestProblemsSayWhere, TestProblemsSpeakOfParameters
// and TestScripts/jsonerror of the program.
package fault

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"jobledger/commands/remote/wire"
	"jobledger/projection/query"
)

// Error is an error with an exit code of its own, and perhaps a hint at what to do about it.
type Error struct {
	Code int
	Err  error
	Hint string // one line without full stop; empty for none

	// Field is the part of a request that the error is about, as HTTP names it; empty: that of the flag with
	// which the text begins, if it begins with one.
	Field string

	Quiet bool // nothing is printed: the code says it all
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Exitf returns an error that ends the program with code. The format may wrap another error with %w.
func Exitf(code int, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// Usagef returns an error in what the user typed; the exit code is [ExitUsage].
func Usagef(format string, args ...any) error {
	return Exitf(ExitUsage, format, args...)
}

// WithHint adds a hint to err, which may be nil, and keeps its exit code. If err has a hint already, that
// stays.
func WithHint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	code, _, hint := Explain(err)
	if hint != "" {
		return err
	}
	return &Error{Code: code, Err: err, Hint: fmt.Sprintf(format, args...)}
}

// Fault is what an error means to a caller.
type Fault struct {
	Exit   int    // the exit code of the program; [ExitOK] with an error means: end quietly
	Word   string // that of the exit code
	Status int    // over HTTP; 0: it is not an error of the request
	Field  string // of the question, as HTTP names it: from, at; "": none is known
	Detail string // what is wrong, without the field
	Hint   string // what to do about it; ""

	asked bool // Detail is about Field
}

// statusOf are the statuses of the exit codes.
var statusOf = map[int]int{ExitUsage: http.StatusBadRequest, ExitNothing: http.StatusNotFound,
	ExitLeaseLost: http.StatusGone, ExitCancelled: http.StatusGone, ExitConflict: http.StatusConflict,
	ExitNoJob: http.StatusNotFound, ExitBusy: http.StatusServiceUnavailable,
	ExitTimedOut: http.StatusServiceUnavailable}

// Of returns what err means. An [Error] has its own code; a [query.InputError] is wrong usage; a problem of
// another server has the exit code that this one gave; any other goes through knownErrors.
func Of(err error) (f Fault) {
	if err == nil {
		return Fault{Word: WordOf(ExitOK)}
	}
	f = Fault{Exit: ExitUnexpected, Detail: err.Error()}
	if e, ok := errors.AsType[*Error](err); ok {
		f.Exit, f.Hint, f.Field = e.Code, e.Hint, e.Field
	} else if in, ok := errors.AsType[*query.InputError](err); ok {
		f.Exit, f.Detail, f.Hint = ExitUsage, in.Reason, in.Hint
		f.Field, f.asked = in.Field, true
	} else if p, ok := errors.AsType[*wire.Problem](err); ok {
		switch {
		case p.Exit != nil:
			if f.Exit = *p.Exit; p.Hint != nil {
				f.Hint = *p.Hint
			}
		case p.Temporary():
			f.Exit, f.Hint = ExitBusy, "the server has too much to do, or ends; try again"
		}
	} else {
		for _, known := range knownErrors {
			if errors.Is(err, known.is) {
				f.Exit, f.Hint = known.code, known.hint
				break
			}
		}
	}
	f.Word, f.Status = WordOf(f.Exit), statusOf[f.Exit]
	return f
}

// Explain returns how the program ends after err: the exit code, the message without the program's name, in
// which a field is the flag for it, and a hint.
func Explain(err error) (code int, message, hint string) {
	f := Of(err)
	if f.asked {
		f.Detail = "--" + FlagOf(f.Field) + ": " + f.Detail
	}
	return f.Exit, f.Detail, f.Hint
}

// InRequest is an error of a request over HTTP, with the field that is wrong.
func (f Fault) InRequest() string {
	if f.asked {
		return f.Field + ": " + f.Detail
	}
	return f.Detail
}

// FieldOf is the field of a question that a flag stands for, and the parameter over HTTP.
func FieldOf(flag string) string {
	if flag == "as-of" {
		return "at"
	}
	return strings.ReplaceAll(flag, "-", "_")
}

// FlagOf is the flag for a field: the reverse of FieldOf.
func FlagOf(field string) string {
	if field == "at" {
		return "as-of"
	}
	return strings.ReplaceAll(field, "_", "-")
}
