package commands

import (
	"context"

	"jobledger/ledger"
	"jobledger/projection"
)

// WorkerStarted appends that a worker process began. From then on it should say every PresentEvery that it is Present.
func (s *Service) WorkerStarted(ctx context.Context, w ledger.Worker, queues, capabilities []string) error {
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
	return s.note(ctx, "worker:"+w.Name, w, &ledger.WorkerStarted{Queues: queues, Capabilities: capabilities})
}

// WorkerStopped appends that a worker process ended in an orderly way.
func (s *Service) WorkerStopped(ctx context.Context, w ledger.Worker) error {
	return s.note(ctx, "worker:"+w.Name, w, &ledger.WorkerStopped{})
}

// PresentEvery is how often a worker process says that it is there.
const PresentEvery = projection.PresentEvery

// Present notes that a worker process is there, so that one that waits for work can be told from one that is gone.
// That is no event: nothing is decided by it.
func (s *Service) Present(ctx context.Context, w ledger.Worker) error {
	return s.Store.Write(ctx, func(tx *ledger.Tx) error { return projection.PutPresence(tx, w, tx.Now()) })
}

// note appends an event that changes no projection, and what it says about the worker's presence.
func (s *Service) note(ctx context.Context, actor string, w ledger.Worker, body ledger.Body) error {
	if err := checkWorker(w); err != nil {
		return err
	}
	return s.Store.Write(ctx, func(tx *ledger.Tx) error {
		presence := projection.PutPresence
		if body.Kind() == ledger.KindWorkerStopped {
			presence = projection.EndPresence
		}
		if err := presence(tx, w, tx.Now()); err != nil {
			return err
		}
		return tx.Append(ctx, ledger.Event{Pos: tx.Next(), At: tx.At(), Actor: actor, Worker: w, Body: body})
	})
}
