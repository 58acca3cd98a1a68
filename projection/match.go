package projection

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Aspect is what a [Match] looks at.
type Aspect int

// The aspects of a job. Those up to OfOwner are compared job by job, and so is the last; the others select by
// events.
const (
	// OfWord is the beginning of the id, a part of queue, key, group, error code, error detail or a tag, or a
	// tag as K=V.
	OfWord     Aspect = iota
	OfID              // the beginning of the id
	OfQueue           // the queue
	OfState           // the name of the state
	OfKey             // the key
	OfTag             // K=V, or K with any value
	OfError           // the code of the last failure
	OfText            // a part of the detail of the last failure
	OfGroup           // the group
	OfVersion         // the version that a worker needs
	OfSchedule        // the schedule that made it
	OfOwner           // the name of the owner, or of the last one
	OfWorker          // the name of any owner
	OfHost            // the host of the owner, or of the last one
	OfExit            // the exit code of the last failure
	OfKind            // the number of the kind of one of its events
	OfActor           // the actor of one of its events
	OfPos             // the pos of one of its events
	OfCode            // the error code of one of its failures
	OfPerson          // who did one of its events: an actor, or its parts, as ada of cli:ada@build7
	OfPayload         // a part of the payload
)

// Match is a condition on a job: one of Values, or with Not none of them.
type Match struct {
	Of     Aspect
	Values []any // of OfExit, OfKind and OfPos integers, otherwise strings
	Not    bool
}

// inMemory reports whether m is compared job by job.
func (m Match) inMemory() bool { return m.Of < OfOwner }

// What the events of job j up to a pos say.
var (
	lastClaimThen = `COALESCE((` + lastClaim + ` AND e.pos <= ? ORDER BY e.seq DESC LIMIT 1), 0)`
	anyClaimThen  = event.SQL(`EXISTS (SELECT 1 FROM events e WHERE e.job = j.n AND e.pos <= ? AND
    e.seq > 0 AND e.kind IN ({claimed}, {taken_over}) AND e.worker IN (SELECT n FROM workers WHERE worker `)
	// a failure is the last one until the job succeeds or is retried
	lastExitThen = event.SQL(`COALESCE((SELECT CAST(e.data ->> 'exit_code' AS BIGINT) FROM events e
    WHERE e.job = j.n AND e.pos <= ? AND e.seq > 0 AND
    e.kind IN ({failed}, {reclaimed}, {succeeded}, {retried}) ORDER BY e.seq DESC LIMIT 1), -999999) `)
	anyCodeThen = event.SQL(`EXISTS (SELECT 1 FROM events e WHERE e.job = j.n AND e.pos <= ? AND e.seq > 0 AND
    e.kind IN ({failed}, {reclaimed}) AND ` + codeOfFailure + ` `)
	// the parts of a name end at its colons and at its @
	hasPart = `replace(':' || name || '@', ':' || CAST(? AS TEXT) || '@', '') <> ':' || name || '@'`
)

// addEvents adds what f says of the events of a job up to the pos until.
func (f Filter) addEvents(c *conditions, until int64) {
	f.addFailed(c, until)
	for _, m := range f.Match {
		in := `IN (` + table.Placeholders(len(m.Values)) + `)`
		args := append([]any{until}, m.Values...)
		term := ""
		switch m.Of {
		case OfOwner:
			term = lastClaimThen + ` IN (SELECT n FROM workers WHERE worker ` + in + `)`
		case OfHost:
			term = lastClaimThen + ` IN (SELECT n FROM workers WHERE host ` + in + `)`
		case OfWorker:
			term = anyClaimThen + in + `))`
		case OfExit:
			term = lastExitThen + in
		case OfKind:
			term = `EXISTS (SELECT 1 FROM events e WHERE e.job = j.n AND e.pos <= ? AND e.kind ` + in + `)`
		case OfActor:
			term = `EXISTS (SELECT 1 FROM events e WHERE e.job = j.n AND e.pos <= ? AND e.actor IN
    (SELECT n FROM names WHERE name ` + in + `))`
		case OfCode:
			term = anyCodeThen + in + `)`
		case OfPerson:
			term = `EXISTS (SELECT 1 FROM events e WHERE e.job = j.n AND e.pos <= ? AND e.actor IN
    (SELECT n FROM names WHERE ` + strings.Repeat(hasPart+` OR `, len(m.Values)-1) + hasPart + `))`
		case OfPos:
			term = `EXISTS (SELECT 1 FROM events e WHERE e.job = j.n AND e.pos <= ? AND e.pos ` + in + `)`
		default:
			continue
		}
		if m.Not {
			term = `NOT ` + term
		}
		c.add(term, args...)
	}
}

// addNow is addEvents for all events.
func (f Filter) addNow(c *conditions) { f.addEvents(c, math.MaxInt64) }

// compares reports whether f has conditions that are compared job by job.
func (f Filter) compares() bool {
	return f.asksFailures() || slices.ContainsFunc(f.Match, func(m Match) bool {
		return m.inMemory() || m.Of == OfPayload
	})
}

// matches reports whether j meets the conditions of f that are compared job by job.
func (f Filter) matches(j Job) bool {
	for _, m := range f.Match {
		if m.inMemory() && m.Not == slices.ContainsFunc(m.Values, func(v any) bool {
			text, _ := v.(string)
			return m.Of.is(j, text)
		}) {
			return false
		}
	}
	return true
}

// payloadMatches reports whether the payload of j meets the conditions of f. An erased one has no parts.
func (f Filter) payloadMatches(ctx context.Context, tx *ledger.Tx, j Job) (bool, error) {
	for _, m := range f.Match {
		if m.Of != OfPayload {
			continue
		}
		_, payload, _, err := tx.Body(ctx, cmp.Or(j.PayloadAt, j.N))
		if err != nil || m.Not == slices.ContainsFunc(m.Values, func(v any) bool {
			text, _ := v.(string)
			return !j.Erased && bytes.Contains(payload, []byte(text))
		}) {
			return false, err
		}
	}
	return true, nil
}

// is reports whether this aspect of j equals text.
func (a Aspect) is(j Job, text string) bool {
	switch a {
	case OfQueue:
		return j.Queue == text
	case OfState:
		return j.State.String() == text
	case OfKey:
		return j.Key == text
	case OfError:
		return j.ErrorCode == text
	case OfText:
		return strings.Contains(j.ErrorDetail, text)
	case OfGroup:
		return j.Group == text
	case OfVersion:
		return j.Version == text
	case OfSchedule:
		return j.Schedule == text
	case OfTag:
		name, value, valued := strings.Cut(text, "=")
		has, ok := j.Tags[name]
		return ok && (!valued || has == value)
	case OfID:
		return hasID(j.ID, text)
	}
	for name, value := range j.Tags {
		if strings.Contains(name, text) || strings.Contains(value, text) || name+"="+value == text {
			return true
		}
	}
	return len(text) >= leastOfID && hasID(j.ID, text) ||
		slices.ContainsFunc([]string{j.Queue, j.Key, j.Group, j.ErrorCode, j.ErrorDetail},
			func(s string) bool { return strings.Contains(s, text) })
}

// leastOfID is how long a word must be to be the beginning of an id: all ids of some years begin alike.
const leastOfID = 6

// hasID reports whether id begins with text, in letters of either case.
func hasID(id event.JobID, text string) bool {
	return strings.HasPrefix(string(id), strings.ToUpper(text))
}
