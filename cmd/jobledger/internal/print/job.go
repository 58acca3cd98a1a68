package print

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// JobPairs returns the names and values by which people see a job at now. On a terminal payload and result
// are shortened.
func JobPairs(j state.Job, now time.Time, terminal bool) [][2]string {
	pairs := jobPairs{now: now, terminal: terminal}
	pairs.identity(j)
	pairs.times(j)
	pairs.outcome(j)
	return pairs.all
}

type jobPairs struct {
	now      time.Time
	terminal bool
	all      [][2]string
}

func (b *jobPairs) add(name, value string) { b.all = append(b.all, [2]string{name, value}) }

// at adds a moment with its distance from now.
func (b *jobPairs) at(name string, t time.Time) {
	b.add(name, fmt.Sprintf("%s (%s)", words.Time(t.In(b.now.Location())), words.Age(t, b.now)))
}

func (b *jobPairs) identity(j state.Job) {
	b.add("job", string(j.ID))
	if b.terminal {
		b.add("number", strconv.FormatInt(j.N, 10))
	}
	b.add("state", j.State.String())
	b.add("state now", j.Later.String())
	b.add("queue", j.Queue)
	b.add("key", keyText(j.Job))
	b.add("tags", tagText(j.Tags))
	b.add("priority", fmt.Sprint(j.Priority))
	b.add("version", j.Version)
	b.add("requires", strings.Join(j.Requires, ", "))
	b.add("after", strings.Join(j.After, ", "))
	b.add("attempts", fmt.Sprintf("%d (failed: %d of %d allowed)", j.Attempt, j.Failures, j.MaxAttempts))
	if j.MaxRuntime > 0 {
		b.add("max runtime", words.Duration(j.MaxRuntime))
	}
	if j.Backoff != (event.Backoff{}) {
		b.add("backoff", words.BackoffText(j.Backoff))
	}
}

func (b *jobPairs) times(j state.Job) {
	now := b.now
	if len(j.Events) > 0 {
		e := j.Events[0]
		b.add("enqueued", fmt.Sprintf("%s (%s) by %s", words.Time(e.At.In(now.Location())),
			words.Age(e.At, now), e.Actor))
	}
	if j.State == event.Queued {
		b.at("run at", j.RunAt)
	}
	if j.Worker.Name != "" {
		name := "last owner"
		if j.State.Held() {
			name = "owner"
		}
		b.add(name, fmt.Sprintf("%s (%s)", j.Worker.Name, words.Process(j.Worker)))
		b.at("claimed", j.ClaimedAt)
	}
	if j.State.Held() {
		b.at("last beat", j.HeartbeatAt)
		left := "ends " + words.Age(j.LeaseUntil, now)
		if j.LeaseUntil.Before(now) {
			left = "ran out " + words.Age(j.LeaseUntil, now) + ", not swept yet"
		}
		b.add("lease", fmt.Sprintf("%s (%s)", words.Time(j.LeaseUntil.In(now.Location())), left))
	}
}

func (b *jobPairs) outcome(j state.Job) {
	if j.Progress != nil {
		b.add("progress", words.Percent(*j.Progress))
	}
	b.add("note", j.Note)
	b.add("cannot be ended", j.CannotEnd)
	if !j.FinishedAt.IsZero() {
		b.at("finished", j.FinishedAt)
	}
	if j.AfterMaxRuntime() {
		b.add("succeeded", "after its max runtime")
	}
	b.add("last error", words.FailureText(j.ErrorCode, j.Exit()))
	b.add("used", words.Used(j.Cost()))
	switch {
	case j.Erased:
		b.add("payload", "(erased)")
	case j.PayloadGone.Why != "":
		b.add("payload", leftText(j.PayloadGone))
	default:
		carried := Carried(j.Form, j.Payload)
		for _, pair := range carried {
			b.add(pair[0], pair[1])
		}
		if carried == nil {
			b.add("payload", words.Body(j.Payload, b.terminal))
		}
	}
	switch {
	case j.Erased:
	case j.ResultGone.Why != "":
		b.add("result", leftText(j.ResultGone))
	case j.Result != nil:
		b.add("result", words.Body(j.Result, b.terminal))
	}
	if j.LostOutput() {
		b.add("output", "(not kept: its worker could make no file for it, and the worker's log says why)")
	}
	refused := 0
	for _, e := range j.Events {
		if e.Kind() == event.KindRefused {
			refused++
		}
	}
	history := words.Count(int64(len(j.Events)), "event")
	if refused > 0 {
		history += fmt.Sprintf(", %d of them refused", refused)
	}
	b.add("history", history)
}

// leftText says that a payload or a result left the ledger.
func leftText(g state.BodyGone) string {
	return fmt.Sprintf("(%s; it left with the job, its digest is in the archive)", g.Size())
}

func tagText(tags map[string]string) string { return strings.Join(words.TagPairs(tags), ", ") }

// WholeJobJSON is a job for programs, with payload and result for those who may see bodies.
type WholeJobJSON struct {
	words.JobJSON
	*words.BodiesJSON
	words.ExitJSON
	*words.StateNow
	goneJSON
	AfterMaxRuntime bool `json:"after_max_runtime,omitempty"` // it has succeeded, beyond its max runtime
}

// FullJobJSON is the JSON form of j, with its state now if j is of the past, and with payload and result for
// callers who may see bodies. Its events are not in it.
func FullJobJSON(j state.Job, bodies bool) WholeJobJSON {
	full := words.ToFullJSON(j.Job, false)
	out := WholeJobJSON{full.JobJSON, nil, words.ToExitJSON(j.Exit()), nil,
		goneJSON{j.PayloadGone.Why, j.ResultGone.Why}, j.AfterMaxRuntime()}
	if bodies {
		out.BodiesJSON = &full.BodiesJSON
	}
	if j.Later != 0 {
		out.StateNow = &words.StateNow{StateNow: j.Later.String()}
	}
	return out
}

// goneJSON says why a payload or a result is null.
type goneJSON struct {
	// Why there is no payload: it was erased, or left the ledger with the job. Absent if neither is so.
	PayloadGone string `json:"payload_gone,omitempty" openapi:"enum=erased,archived"`
	// The same for the result.
	ResultGone string `json:"result_gone,omitempty" openapi:"enum=erased,archived"`
}

// JobState describes the state of a job at now in one line.
func JobState(j projection.Job, now time.Time) string {
	text := fmt.Sprintf("job %s in %s is %s", j.ID, j.Queue, j.State)
	switch {
	case j.State == event.Queued:
		text += ", to run now"
		if j.RunAt.After(now) {
			text = fmt.Sprintf("job %s in %s is queued, to run at %s (%s)", j.ID, j.Queue,
				words.Time(j.RunAt.In(now.Location())), words.Age(j.RunAt, now))
		}
	case j.State.Held():
		text += fmt.Sprintf(" by %s until %s", j.Worker.Name, words.Time(j.LeaseUntil.In(now.Location())))
	}
	if j.Failures > 0 {
		text += fmt.Sprintf(", failures %d of %d", j.Failures, j.MaxAttempts)
	}
	return text
}

// keyText is the key of a job, and for a temporary key how long the job has it.
func keyText(j projection.Job) string {
	switch {
	case j.UniqueWhile == "":
		return j.Key
	case j.KeyFree:
		return fmt.Sprintf("%s (while %s: free again)", j.Key, j.UniqueWhile)
	}
	return fmt.Sprintf("%s (while %s)", j.Key, j.UniqueWhile)
}
