package commands

import (
	"context"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// PresentEvery is how often a worker process should call Service.Present.
const PresentEvery = projection.PresentEvery

// WorkerStarted records that a worker process began. From then on the process should call Present every
// PresentEvery.
func (s *Service) WorkerStarted(ctx context.Context, w event.Worker, queues, capabilities []string) error {
	for _, name := range queues {
		if err := CheckQueue(name); err != nil {
			return err
		}
	}
	for _, label := range capabilities {
		if err := CheckLabel("capability", label); err != nil {
			return err
		}
	}
	return s.recordWorker(ctx, w, &event.WorkerStarted{Queues: queues, Capabilities: capabilities})
}

// WorkerStopped records that a worker process ended in an orderly way.
func (s *Service) WorkerStopped(ctx context.Context, w event.Worker) error {
	return s.recordWorker(ctx, w, &event.WorkerStopped{})
}

func (s *Service) recordWorker(ctx context.Context, w event.Worker, body event.Body) error {
	if err := checkWorker(w); err != nil {
		return err
	}
	return s.Store.Write(ctx, func(tx *ledger.Tx) error {
		_, err := journal.Record(ctx, tx, journal.Fact{Actor: "worker:" + w.Name, Worker: w, Body: body})
		return err
	})
}

// Present notes that a worker process is alive, which distinguishes an idle worker from a dead one. It
// records no event, since no decision depends on it.
func (s *Service) Present(ctx context.Context, w event.Worker) error {
	return s.Store.Write(ctx, func(tx *ledger.Tx) error { return projection.PutPresence(tx, w, tx.Now()) })
}
