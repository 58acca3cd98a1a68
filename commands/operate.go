package commands

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// Pause stops claims from a queue; changed is false if it was paused already, and then there is no event.
func (s *Service) Pause(ctx context.Context, actor, queue, reason string) (changed bool, err error) {
	return s.setPaused(ctx, actor, queue, true, &ledger.QueuePaused{Queue: queue, Reason: reason}, reason)
}

// Resume lets a queue give jobs again; changed is false if it was not paused, and then there is no event.
func (s *Service) Resume(ctx context.Context, actor, queue, reason string) (changed bool, err error) {
	return s.setPaused(ctx, actor, queue, false, &ledger.QueueResumed{Queue: queue, Reason: reason}, reason)
}

func (s *Service) setPaused(ctx context.Context, actor, queue string, paused bool, body ledger.Body, reason string) (changed bool, err error) {
	if err := CheckQueue(queue); err != nil {
		return false, err
	}
	if err := checkText("reason", reason, MaxReason); err != nil {
		return false, err
	}
	if err := CheckActor(actor); err != nil {
		return false, err
	}
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		changed = false
		q, err := projection.GetQueue(ctx, tx, queue)
		if err != nil || q.Paused == paused {
			return err
		}
		e := ledger.Event{Pos: tx.Next(), At: tx.At(), Actor: actor, Body: body}
		if q, err = projection.EvolveQueue(q, e); err != nil {
			return err
		}
		if err := projection.PutQueue(ctx, tx, q); err != nil {
			return err
		}
		changed = true
		if !paused {
			tx.Announce()
		}
		return tx.Append(ctx, e)
	})
	return changed && err == nil, err
}

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

// Rebuild derives the projection anew from the events, and records what that changed. Others go on while it finds out
// what differs; only that is written in one transaction. Where a table is missing as a whole, all is done in that.
func (s *Service) Rebuild(ctx context.Context, actor string) (report audit.Rebuilt, err error) {
	if err := CheckActor(actor); err != nil {
		return report, err
	}
	var plan *audit.RebuildPlan
	err = s.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		plan, err = audit.PlanRebuild(ctx, tx)
		return err
	})
	if err != nil {
		return report, err
	}
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		var err error
		if report, err = plan.Apply(ctx, tx); err != nil {
			return err
		}
		failpoint.Hit("rebuilt")
		return tx.Append(ctx, ledger.Event{Pos: tx.Next(), At: tx.At(), Actor: actor, Body: &ledger.Rebuilt{Jobs: report.Jobs,
			Changed: report.Changed, Missing: report.Missing, Extra: report.Extra}})
	})
	return report, err
}
