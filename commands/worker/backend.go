package worker

import (
	"context"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Backend is what a Worker needs of a ledger. Its methods are those of [commands.Service] with the same
// names, and keep their promises: an error says that nothing is known, and then the same call may be made
// again.
type Backend interface {
	ApplyAndClaim(ctx context.Context, actor string, ops []commands.Op, r commands.ClaimRequest) (
		[]commands.Result, []projection.Job, error)
	ApplyBatch(ctx context.Context, actor string, ops []commands.Op) ([]commands.Result, error)
	Ready(ctx context.Context, r commands.ClaimRequest) (ready bool, next time.Time, err error)
	Live(ctx context.Context, jobs []projection.Job) (live map[string]bool, err error)
	WorkerStarted(ctx context.Context, w event.Worker, queues, capabilities []string) error
	Present(ctx context.Context, w event.Worker) error
	WorkerStopped(ctx context.Context, w event.Worker) error

	// Watch returns a channel that gets a value when a job may be ready, WatchEnded one that gets a value when a
	// claim may have ended; nil: never. The caller ends them with unsubscribe.
	Watch() (changed <-chan struct{}, unsubscribe func())
	WatchEnded() (ended <-chan struct{}, unsubscribe func())
}

// local is the Backend that this process has opened.
type local struct{ *commands.Service }

func (l local) Watch() (changed <-chan struct{}, unsubscribe func()) { return l.Store.Watch() }

func (l local) WatchEnded() (ended <-chan struct{}, unsubscribe func()) { return l.Store.WatchEnded() }
