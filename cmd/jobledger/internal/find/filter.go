package find

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// The values of by: which times from and to limit.
const (
	ByEnqueued = "enqueued"
	ByFinished = "finished"
	ByFailed   = "failed"
)

// Bys are all of them.
var Bys = []string{ByEnqueued, ByFinished, ByFailed}

// ByOf returns what from and to are about: where it is not given, the failure that is asked for, or else when
// jobs were enqueued.
func ByOf(asked url.Values) string {
	switch {
	case asked.Has("by"):
		return asked.Get("by")
	case asked.Has("failure") || asked.Has("last_failure"):
		return ByFailed
	}
	return ByEnqueued
}

// JobFields are what jobs can be asked for by.
var JobFields = []string{"queue", "state", "tag", "key", "group", "from", "to", "by", "error", "exit",
	"failure", "last_failure", "host", "find"}

// StateNames returns the names of all states.
func StateNames() []string { return words.Of(event.States(), event.State.String) }

// badInput returns an error about the value of a field.
func badInput(field, format string, args ...any) *query.InputError {
	return &query.InputError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// badName returns an error about a name that is not in names.
func badName(field, what, name string, names []string) *query.InputError {
	e := badInput(field, "there is no %s %.40q", what, name)
	e.Hint = "the " + what + "s are " + strings.Join(names, ", ")
	return e
}

// whole returns the number that a field has, from lo to hi; ok is false without one.
func whole(asked url.Values, field string, lo, hi int) (n int, ok bool, err error) {
	if !asked.Has(field) {
		return 0, false, nil
	}
	text := asked.Get(field)
	n, err = strconv.Atoi(text)
	switch {
	case err == nil && lo <= n && n <= hi:
		return n, true, nil
	case hi == math.MaxInt:
		return 0, false, badInput(field, "%q is not a whole number of at least %d", text, lo)
	}
	return 0, false, badInput(field, "%q is not a whole number from %d to %d", text, lo, hi)
}

// Jobs reads which jobs are asked for.
func Jobs(asked url.Values, now time.Time) (f query.JobFilter, err error) {
	f.Queues = slices.Clone(asked["queue"])
	f.Key, f.Error, f.Host, f.Group = asked.Get("key"), asked.Get("error"), asked.Get("host"), asked.Get("group")
	for _, name := range []string{"error", "host", "group"} {
		if asked.Has(name) && asked.Get(name) == "" {
			return f, badInput(name, "may not be empty")
		}
	}
	exit, given, err := whole(asked, "exit", 0, 255)
	if err != nil {
		return f, err
	}
	if given {
		f.Exit = &exit
	}
	f.Failure, f.LastFailure = asked.Get("failure"), asked.Get("last_failure")
	for _, field := range []string{"failure", "last_failure"} {
		if asked.Has(field) && !query.IsFingerprint(asked.Get(field)) {
			e := badInput(field, "%.40q is not the fingerprint of a failure", asked.Get(field))
			e.Hint = "it is f1- and 12 digits, as the report of failures by their cause has it"
			return f, e
		}
	}
	by := ByOf(asked)
	switch {
	case !slices.Contains(Bys, by):
		return f, badInput("by", "%q is not one of %s", by, strings.Join(Bys, ", "))
	case by == ByFailed && f.Failure == "" && f.LastFailure == "":
		return f, badInput("by", "failed is for jobs that are asked for by failure or last_failure")
	case asked.Has("by") && !asked.Has("from") && !asked.Has("to"):
		return f, badInput("by", "by needs from or to")
	}
	for _, word := range asked["state"] {
		s, err := event.ParseState(word)
		if err != nil {
			return f, badName("state", "state", word, StateNames())
		}
		f.States = append(f.States, s)
	}
	for _, tag := range asked["tag"] {
		name, value, ok := strings.Cut(tag, "=")
		if !ok || name == "" {
			return f, badInput("tag", "%q is not K=V", tag)
		}
		if old, twice := f.Tags[name]; twice && old != value {
			return f, badInput("tag", "no job has both %s=%s and %s=%s", name, old, name, value)
		}
		if f.Tags == nil {
			f.Tags = make(map[string]string)
		}
		f.Tags[name] = value
	}
	w, err := Window(asked, now)
	if err != nil {
		return f, err
	}
	finished, failed := by == ByFinished, by == ByFailed
	if w.From != nil {
		f.Bounds = append(f.Bounds, query.Bound{When: *w.From, Begin: true, Finished: finished, Failed: failed})
	}
	if w.To != nil {
		f.Bounds = append(f.Bounds, query.Bound{When: *w.To, Finished: finished, Failed: failed})
	}
	return f, addFind(asked, now, &f)
}

// Window reads the fields from, to and at. A from after to, which would match nothing, is an
// error.
func Window(asked url.Values, now time.Time) (w query.Window, err error) {
	for _, end := range []struct {
		field string
		when  **query.When
	}{{"from", &w.From}, {"to", &w.To}, {"at", &w.At}} {
		if asked.Has(end.field) {
			moment, err := when.ReadWhen(end.field, asked.Get(end.field), now)
			if err != nil {
				return w, err
			}
			*end.when = &moment
		}
	}
	return w, query.Window{From: w.From, To: w.To}.Check()
}
