package print

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection"
	"jobledger/projection/query"
)

// Queues is a table of which queues are paused at now.
func Queues(queues []projection.Queue, now time.Time) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "QUEUE", Least: 8}, {Title: "STATE"},
		{Title: "SINCE", Drop: 1}, {Title: "FOR", Right: true}, {Title: "BY", Drop: 2, Least: 8},
		{Title: "REASON", Least: 8}}}
	for _, q := range queues {
		state := "open"
		if q.Paused {
			state = "paused"
		}
		if q.Since.IsZero() {
			t.Add(q.Name, state, "-", "-", "", "")
			continue
		}
		held := words.Roughly(max(0, now.Sub(q.Since)))
		t.Add(q.Name, state, words.Millis(q.Since.In(now.Location())), held, q.Actor, q.Reason)
	}
	return t
}

// QueueJSON is a queue for programs.
type QueueJSON struct {
	Queue  string  `json:"queue"`
	Paused bool    `json:"paused"`
	Since  *string `json:"since"`
	Actor  *string `json:"actor"`
	Reason *string `json:"reason"`
}

// NewQueueJSON is q for programs.
func NewQueueJSON(q projection.Queue) QueueJSON {
	return QueueJSON{Queue: q.Name, Paused: q.Paused, Since: words.TimeOrNull(q.Since),
		Actor: words.TextOrNull(q.Actor), Reason: words.TextOrNull(q.Reason)}
}

// QueueThenJSON is a queue as it was.
type QueueThenJSON struct {
	QueueJSON
	AsOf *string `json:"as_of" openapi:"optional=as_of,pos"`
	Pos  int64   `json:"pos"`
}

// QueueJSONOf is the JSON form of q, now or at a moment.
func QueueJSONOf(q projection.Queue, past query.Past) any {
	if !past.Given {
		return NewQueueJSON(q)
	}
	return QueueThenJSON{NewQueueJSON(q), words.TimeOrNull(past.At), past.Pos}
}

// QueueSetJSON is a queue after pause or resume, for programs.
type QueueSetJSON struct {
	Queue   string  `json:"queue"`
	Paused  bool    `json:"paused"`
	Changed bool    `json:"changed"` // false: it was so already
	Since   *string `json:"since"`
	Actor   *string `json:"actor"`
	Reason  *string `json:"reason"`
}

// NewQueueSetJSON is q for programs; changed says whether it was not so already.
func NewQueueSetJSON(q projection.Queue, changed bool) QueueSetJSON {
	return QueueSetJSON{q.Name, q.Paused, changed, words.TimeOrNull(q.Since), words.TextOrNull(q.Actor),
		words.TextOrNull(q.Reason)}
}

// QueueSet says in a sentence that q is paused or not, and whether that was so already; known is false where
// no job was ever in it, and near a similar queue that has jobs, if there is one. Times are given in zone.
func QueueSet(q projection.Queue, known, changed bool, near string, zone *time.Location) string {
	state := "not paused"
	if q.Paused {
		state = "paused"
	}
	text := fmt.Sprintf("queue %s is %s", q.Name, state)
	switch {
	case changed:
	case !q.Paused:
		text = fmt.Sprintf("queue %s was not paused", q.Name)
		if !q.Since.IsZero() {
			text += fmt.Sprintf("; it was resumed at %s by %s", words.Time(q.Since.In(zone)), q.Actor)
		}
	default:
		text += " already"
		if !q.Since.IsZero() {
			text += fmt.Sprintf(", since %s by %s", words.Time(q.Since.In(zone)), q.Actor)
		}
		if q.Reason != "" {
			text += ": " + q.Reason
		}
	}
	if !known { // a slip of the finger would pause nothing
		text += "; no job was ever in it"
		if near != "" {
			text += ", did you mean " + near + "?"
		}
	}
	return text
}
