package incident

import (
	"time"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// Limits of a report. The exported files have the rest.
const (
	maxRows    = 200  // of a table
	maxEntries = 2000 // of the timeline
)

// Report is what happened within a window of a ledger.
type Report struct {
	Ledger string // its path or address
	Window export.Window

	// WindowOnly says that events.jsonl has the events of Window, not also those before it.
	WindowOnly bool

	Events   int64 // within the window
	Activity status.Activity

	Paused   []projection.Queue // the queues that were paused already when the window began
	Timeline []*Entry           // in the order in which they began, at most maxEntries
	Omitted  int64              // entries beyond that

	LostWorkers []*LostWorker // in the order in which their loss was detected
	// fell silent and lost no job within the window; by their last sign of life
	Silent   []status.LostWorker
	Reclaims Table[Reclaim]
	Refused  Table[event.Event] // each with a body of type *ledger.Refused
	GivenUp  Table[GivenUp]
	Failures []*query.FailureGroup // by code, the largest first
	Depth    *Depth
	Verified audit.Verified // of the events of the window and their jobs, when the report was made
}

// Table holds the first maxRows rows of a table.
type Table[T any] struct {
	Rows  []T
	Total int64 // including those that are left out
}

func (t *Table[T]) add(row T) {
	if t.Total++; len(t.Rows) < maxRows {
		t.Rows = append(t.Rows, row)
	}
}

// Entry is a line of the timeline. Events of one sort that follow each other closely share one.
type Entry struct {
	First, Last time.Time
	Count       int64
	Text        string // Markdown: what happened, Count times
	ByOperator  bool
	Failures    bool // of attempts

	text func(count int64) string // makes Text when Count is known
}

// LostWorker is one period without heartbeats of a worker process that ended with a reclaim. A process
// that came back and was silent again has another one.
type LostWorker struct {
	Worker        event.Worker
	Jobs          int64     // taken back from it
	LastHeartbeat time.Time // zero: it sent none
	LeaseEnd      time.Time // the first lease that ran out
	Detected      time.Time // the first reclaim
	latest        time.Time // the last reclaim
	Refused       int64     // writes that it tried afterwards
	Back          time.Time // the first of them; zero if it tried none
}

// Reclaim is a job that was taken back from its worker.
type Reclaim struct {
	event.Event
	Queue string
	*event.Reclaimed
}

// GivenUp is the event after which a job stayed failed.
type GivenUp struct {
	event.Event
	Queue, Code string
}
