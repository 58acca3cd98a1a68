package commands

import (
	"cmp"
	"context"

	"jobledger/commands/internal/check"
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
	if err := invalid(cmp.Or(check.Queues(queues), check.Labels("capability", capabilities))); err != nil {
		return err
	}
	return s.recordWorker(ctx, w, &event.WorkerStarted{Queues: queues, Capabilities: capabilities})
}

// WorkerStopped records that a worker process ended in an orderly way.
func (s *Service) WorkerStopped(ctx context.Context, w event.Worker) error {
	return s.recordWorker(ctx, w, &event.WorkerStopped{})
}

func (s *Service) recordWorker(ctx context.Context, w event.Worker, body event.Body) error {
	if err := CheckWorker(w); err != nil {
		return err
	}
	return s.write(ctx, func(tx *ledger.Tx) error {
		_, err := journal.Record(ctx, tx, journal.Fact{Actor: "worker:" + w.Name, Worker: w, Body: body})
		return err
	})
}

// Beat is the answer to Service.Beat.
type Beat struct {
	Results []Result // of the heartbeats, in their order
	// the claims of the process that the heartbeats did not name, with their tokens: an answer may be lost
	Unknown []projection.Job
}

// Beat carries out the heartbeats of a worker process in one transaction, each with its own Result, and says
// what else the process with this boot holds.
func (s *Service) Beat(ctx context.Context, actor, boot string, ops []Op) (beat Beat, err error) {
	if err := CheckText("boot", boot, MaxKey); err != nil {
		return beat, err
	}
	if len(ops) > 0 {
		if beat.Results, err = s.ApplyBatch(ctx, actor, ops); err != nil {
			return beat, err
		}
	}
	named := make(map[string]bool, len(ops))
	for _, op := range ops {
		if c, ok := op.Command.(ownerCommand); ok {
			token, _ := c.credentials()
			named[token] = true
		}
	}
	err = s.read(ctx, func(tx *ledger.Tx) error {
		beat.Unknown, err = projection.HeldWhere(ctx, tx, func(w event.Worker, token string) bool {
			return boot != "" && w.Boot == boot && !named[token]
		})
		return err
	})
	return beat, err
}

// Present notes that a worker process is alive, which distinguishes an idle worker from a dead one. It
// records no event, since no decision depends on it.
func (s *Service) Present(ctx context.Context, w event.Worker) error {
	return s.write(ctx, func(tx *ledger.Tx) error { return projection.PutPresence(tx, w, tx.Now()) })
}
