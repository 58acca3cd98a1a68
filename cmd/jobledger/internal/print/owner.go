package print

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/query"
)

// Owner is who held a job at a moment.
type Owner struct {
	Job   event.JobID
	At    projection.Moment
	State event.State      // of the job then; 0: it was not enqueued yet
	Claim attempts.Attempt // zero if there is none
}

// Held reports whether there was an owner.
func (o Owner) Held() bool { return o.Claim.Pos > 0 }

// ReadOwner returns who held job n at a moment.
func ReadOwner(ctx context.Context, tx *ledger.Tx, n int64, at projection.Moment) (o Owner, err error) {
	o.At = at
	if o.Job, err = projection.IDOf(ctx, tx, n); err == nil {
		o.State, o.Claim, err = query.Owner{Job: n, At: at}.Read(ctx, tx)
	}
	return o, err
}

// OwnerJSON is an owner for programs.
type OwnerJSON struct {
	Job     event.JobID `json:"job"`
	At      string      `json:"at"`
	Pos     int64       `json:"pos"`
	State   *string     `json:"state"`
	Worker  *string     `json:"worker"`
	Boot    *string     `json:"boot"`
	Host    *string     `json:"host"`
	PID     *int        `json:"pid"`
	Attempt *int        `json:"attempt"`
	Since   *string     `json:"since"`
	Until   *string     `json:"until"` // null: it has not ended
	ID      event.JobID `json:"id"`    // of the job, too
}

// NewOwnerJSON is o for programs.
func NewOwnerJSON(o Owner) OwnerJSON {
	out := OwnerJSON{Job: o.Job, ID: o.Job, At: words.JSONTime(o.At.At), Pos: o.At.Pos,
		State: words.TextOrNull(o.State.String())}
	if a := o.Claim; o.Held() {
		out.Worker, out.Boot, out.Host = words.TextOrNull(a.Worker.Name), words.TextOrNull(a.Worker.Boot),
			words.TextOrNull(a.Worker.Host)
		out.PID, out.Attempt = &a.Worker.PID, &a.Attempt
		out.Since, out.Until = words.TimeOrNull(a.ClaimedAt), words.TimeOrNull(a.EndedAt)
	}
	return out
}

// OwnerMoment is the moment of o, in zone.
func OwnerMoment(o Owner, zone *time.Location) string {
	return fmt.Sprintf("%s (pos %d)", words.Millis(o.At.At.In(zone)), o.At.Pos)
}

// OwnerPairs are the names and values by which people see an owner, with times in zone.
func OwnerPairs(o Owner, zone *time.Location) [][2]string {
	a, until := o.Claim, "now"
	if !a.EndedAt.IsZero() {
		until = fmt.Sprintf("%s (%s, %s)", words.Millis(a.EndedAt.In(zone)),
			words.Briefly(a.EndedAt.Sub(a.ClaimedAt)), a.Outcome)
	}
	return [][2]string{
		{"job", string(o.Job)},
		{"at", OwnerMoment(o, zone)},
		{"state", o.State.String()},
		{"owner", a.Worker.Name},
		{"process", words.Process(a.Worker)},
		{"boot", a.Worker.Boot},
		{"attempt", fmt.Sprint(a.Attempt)},
		{"since", words.Millis(a.ClaimedAt.In(zone))},
		{"until", until},
	}
}

// ClaimPairs are the names and values by which people see a job that was claimed, with times in zone.
func ClaimPairs(j projection.Job, zone *time.Location) [][2]string {
	var tags []string
	for name, value := range j.Tags {
		tags = append(tags, name+"="+value)
	}
	slices.Sort(tags)
	return [][2]string{
		{"job", string(j.ID)},
		{"token", j.Token},
		{"lease", fmt.Sprintf("until %s (%s)", words.Time(j.LeaseUntil.In(zone)),
			words.Duration(j.LeaseUntil.Sub(j.ClaimedAt)))},
		{"queue", j.Queue},
		{"key", j.Key},
		{"tags", strings.Join(tags, " ")},
		{"attempt", fmt.Sprintf("%d (failures %d of %d)", j.Attempt, j.Failures, j.MaxAttempts)},
		{"payload", readablePayload(j.Payload)},
	}
}

// readablePayload is the payload, or its beginning if it is long; --json has all of it.
func readablePayload(b []byte) string {
	const most = 1000
	switch {
	case len(b) == 0:
		return "(empty)"
	case !utf8.Valid(b):
		return fmt.Sprintf("(%s, not text)", words.Count(int64(len(b)), "byte"))
	case len(b) > most:
		return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(string(b[:most]), ""), len(b))
	}
	return string(b)
}
