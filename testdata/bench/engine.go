package main

import (
	"context"
	"time"
)

// File is where an engine keeps its queue, and how safely.
type File struct {
	Path string `json:"path"` // absolute; in a directory of its own
	Sync string `json:"sync"` // "full" or "normal"
	New  bool   `json:"new"`  // the file or the tables do not exist yet: create them
	// of a PostgreSQL database of its own, where the engine needs one instead of the file
	URL string `json:"url"`
	// Direct is the address without the proxy that delays, for those who watch; "" if there is none.
	Direct string `json:"direct"`
	// AsItStands says that the size of a database is measured with the dead rows.
	AsItStands bool `json:"as_it_stands"`
	// SlowSync is how much longer each sync of SQLite takes.
	SlowSync time.Duration `json:"slow_sync"`
	// Lanes are the priorities that the jobs of a batch have by turns; 0: one
	Lanes int `json:"lanes"`
	// Transacts says that the run is of transactions: the queue is a transactor
	Transacts bool `json:"transacts"`
}

// Queue is one engine's queue in one file or database, as one process holds it.
type Queue interface {
	// Enqueue stores one job; it is durable on return. Called by many goroutines at once.
	Enqueue(ctx context.Context, payload []byte) error

	// EnqueueBatch stores all payloads in one transaction.
	EnqueueBatch(ctx context.Context, payloads [][]byte) error

	// Drain runs jobs with the given number of workers until ctx ends, calls t.Ran(payload) once for each
	// execution, and returns when its workers have ended. An empty queue is not a reason to return: jobs may be in
	// other processes' hands. Workers that see their own operations also report the time of each claim to its
	// completion with t.Took. ctx ending is not an error.
	Drain(ctx context.Context, workers int, t *Tally) error

	Close() error
}

// Engine is one queue under test.
type Engine struct {
	Name     string
	Module   string   // whose version the report prints; "" for none
	Settings string   // how it is set up, in a line
	Phases   []string // those it takes part in; nil for all but latency
	Workers  []int    // worker counts to drain with, beside 8 and 64
	InProcs  []int    // workers of each process in the procs phase, beside -proc-workers
	Postgres bool     // its queue is in a PostgreSQL database, or the program is that uses it
	InFile   bool     // its queue is in a file all the same

	// Transacts says that its queue is a transactor, which takes part in the phases transact and commit.
	Transacts bool

	// Times is how many times -jobs (-batches, -latency) a run of this phase gets: more than one where the
	// engine is so fast, or works in such steps, that start and end would weigh too much; less than one where it
	// is slow. Nil for one.
	Times func(phase string, workers int) float64

	// Unfinished is what follows FROM in a SELECT that finds every job that is not finished. It is asked often
	// while the queue drains, so it should be answered from an index.
	Unfinished string

	Open func(ctx context.Context, f File) (Queue, error)
}

// engines returns all engines, in the order of the report.
func engines() []Engine {
	return []Engine{rawLedgerEngine(), rawBatchEngine(), rawGroupedEngine(), rawSchemaEngine(), goqiteEngine(),
		backliteEngine(), riverEngine(),
		jobledgerEngine(),
		riverPostgresEngine(), jobledgerPostgresEngine(), relayedEngine(), inboxEngine()}
}

func engineNamed(name string) (Engine, bool) {
	for _, e := range engines() {
		if e.Name == name {
			return e, true
		}
	}
	return Engine{}, false
}
