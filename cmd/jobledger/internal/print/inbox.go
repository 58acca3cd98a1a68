package print

import (
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/inbox"
)

// InboxRowJSON is the JSON form of a row of the inbox.
type InboxRowJSON struct {
	ID        string  `json:"id"`    // of the job that it is to become
	State     string  `json:"state"` // waiting or refused
	AskedAt   *string `json:"asked_at"`
	Role      *string `json:"role"` // the user of the server who asked
	Job       string  `json:"job"`  // what was asked for, as it stands in the row
	RefusedAt *string `json:"refused_at"`
	Why       *string `json:"why"`
}

// NewWaitingJSON is a row that waits, as JSON.
func NewWaitingJSON(r inbox.Row) InboxRowJSON {
	return InboxRowJSON{ID: r.ID, State: "waiting", AskedAt: words.TimeOrNull(r.At()),
		Role: words.TextOrNull(r.Role), Job: r.Job}
}

// NewRefusedJSON is a row that was refused, as JSON.
func NewRefusedJSON(r inbox.Refused) InboxRowJSON {
	out := NewWaitingJSON(r.Row)
	out.State, out.RefusedAt, out.Why = "refused", words.TimeOrNull(r.RefusedAt()), &r.Why
	return out
}

// Inbox is a table of rows that were refused and of rows that wait.
func Inbox(refused []inbox.Refused, waiting []inbox.Row, now time.Time) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "ID"}, {Title: "STATE"}, {Title: "ASKED", Drop: 2},
		{Title: "ROLE", Drop: 3}, {Title: "JOB", Least: 12, Drop: 1}, {Title: "WHY", Least: 20}}}
	add := func(r inbox.Row, state, why string) {
		t.Add(r.ID, state, words.AgeOrOn(r.At(), now), r.Role, r.Job, why)
	}
	for _, r := range refused {
		add(r.Row, "refused", r.Why)
	}
	for _, r := range waiting {
		add(r, "waiting", "")
	}
	return t
}
