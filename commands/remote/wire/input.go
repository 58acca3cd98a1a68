package wire

import (
	"cmp"
	"errors"
	"strings"

	"jobledger/commands"
)

// InputError is what is wrong with a part of the input.
type InputError struct {
	Field  string `json:"field,omitempty"` // a parameter, or a member of JSON, with dots below others; "": all
	Line   int    `json:"line,omitempty"`  // of lines of JSON, from 1 on
	Detail string `json:"detail"`
	err    error
}

// Error says what is wrong.
func (e *InputError) Error() string { return e.Detail }

// Unwrap returns the error without its place.
func (e *InputError) Unwrap() error { return e.err }

// InField returns err, unless it is nil, as about a field of the input.
func InField(field string, err error) error {
	if err == nil {
		return nil
	}
	return &InputError{Field: field, Detail: err.Error(), err: err}
}

// InLine returns err as about a line of the input.
func InLine(line int, err error) error {
	return &InputError{Line: line, Detail: err.Error(), err: err}
}

// InputOf returns the part of the input that err is about; known is false where it does not say.
func InputOf(err error) (in InputError, known bool) {
	for rest := err; rest != nil; {
		e, ok := errors.AsType[*InputError](rest)
		if !ok {
			break
		}
		in.Field, in.Line, rest = cmp.Or(in.Field, e.Field), cmp.Or(in.Line, e.Line), e.err
	}
	if invalid, ok := errors.AsType[*commands.InvalidError](err); ok && in.Field == "" && invalid.Field != body {
		in.Field, _, _ = strings.Cut(invalid.Field, ":")
	}
	if err != nil {
		in.Detail = err.Error()
	}
	return in, in.Field != "" || in.Line > 0
}
