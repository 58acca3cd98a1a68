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

	// WindowOnly says that events.jsonl has only the events of Window, without those before it.
	WindowOnly bool

	Events   int64 // within the window
	Activity status.Activity

	Paused   []projection.Queue // the queues that were paused already when the window began
	Timeline []*Entry           // in the order in which they began, at most maxEntries
	Omitted  int                // entries beyond that

	LostWorkers []*LostWorker // in the order in which their loss was detected
	// fell silent and lost no job within the window; by their last sign of life
	Silent   []status.LostWorker
	Taken    []query.TakenJob
	Refused  []event.Event // each with a body of type *event.Refused
	GivenUp  []query.Failure
	Failures query.FailureGroups // by cause
	Depth    *Depth
	Verified audit.Verified // of the events of the window and their jobs, when the report was made
}

// Entry is a line of the timeline. Events of one sort that follow each other closely share one.
type Entry struct {
	First, Last time.Time
	Count       int
	Text        string // Markdown: what happened, Count times
	ByOperator  bool
	Failures    bool // of attempts
}

// LostWorker is a worker process from which jobs were taken back, and what it tried afterwards.
type LostWorker struct {
	*query.Loss
	Refused int64     // writes
	Back    time.Time // the first of them; zero if it tried none
}
