package simtest

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"time"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/rebuild"
)

// archives reports whether jobs leave the ledger in this history, again and again: in one of four, without
// sabotage.
func (s *sim) archives() bool { return s.broken == "" && s.seed%4 == 1 }

// archive fills the last block, archives everything, and removes the jobs that ended some time ago. What is
// left must be in order, also in the eyes of a rebuild.
func (s *sim) archive() {
	if !s.archives() {
		return
	}
	ctx, o := context.Background(), &s.oracle
	setup := &process{name: "archive"}
	err := o.store.Write(ctx, fill)
	if err == nil {
		o.look(setup)
		service := &commands.Service{Store: o.store}
		_, err = archive.Close(ctx, service, o.pos,
			archive.Options{Dir: s.archiveDir(), Actor: "cli:sim", Most: o.pos})
		if o.pos == 0 && errors.Is(err, archive.ErrNothing) {
			return // nothing has happened yet
		}
		if err == nil {
			m := archive.Removal{Service: service, Dir: s.archiveDir(), Actor: "cli:sim",
				OlderThan: s.span(0, 20*time.Second), KeepFailed: s.span(0, 2*time.Minute)}
			var gone event.Removed
			gone, err = m.All(ctx, nil)
			s.counts["left"] += int(gone.Jobs)
			s.say("archive", "%d jobs left, of %d events", gone.Jobs, gone.Events)
		}
	}
	if err != nil {
		s.find("archive", "%v", err)
		return
	}
	o.look(setup)
	err = o.store.Read(ctx, func(tx *ledger.Tx) error {
		v, err := audit.Verify(ctx, tx, nil)
		for _, f := range v.Findings {
			s.find("verify", "after archiving: %+v", f)
		}
		return err
	})
	if err != nil {
		s.find("read", "%v", err)
	}
	s.rebuild()
}

// rebuild finds nothing to do.
func (s *sim) rebuild() {
	err := s.oracle.store.Read(context.Background(), func(tx *ledger.Tx) error {
		p, err := rebuild.New(context.Background(), tx)
		if err != nil {
			return err
		}
		wrong := reflect.ValueOf(*p)
		for _, list := range []string{"differ", "extra", "frames"} {
			if n := wrong.FieldByName(list).Len(); n > 0 {
				s.find("rebuild", "it would change %d of %s", n, list)
			}
		}
		return nil
	})
	if err != nil {
		s.find("rebuild", "%v", err)
	}
}

func (s *sim) archiveDir() string { return s.path + archive.Suffix }

// fill appends events until the last block is whole.
func fill(tx *ledger.Tx) error {
	ctx := context.Background()
	q, err := projection.GetQueue(ctx, tx, "filler")
	for err == nil && (tx.Next()-1)%proof.BlockSize != 0 {
		e := event.Event{Pos: tx.Next(), At: tx.At(), Actor: "cli:sim", Body: &event.QueuePaused{Queue: "filler"}}
		if q.Paused {
			e.Body = &event.QueueResumed{Queue: "filler"}
		}
		if q, err = projection.EvolveQueue(q, e); err != nil {
			return err
		}
		if err := projection.PutQueue(ctx, tx, q); err != nil {
			return err
		}
		err = tx.Append(ctx, e)
	}
	return err
}

// every yields all events that there ever were.
func (o *oracle) every(store *ledger.Store) iter.Seq2[event.Line, error] {
	return archive.Lines(context.Background(), store, o.sim.archiveDir(), ledger.Filter{})
}

// maybeGone reports whether an answer is right for a job that may have left.
func (s *sim) maybeGone(err error) bool {
	return s.archives() && (errors.Is(err, commands.ErrNoJob) || errors.Is(err, commands.ErrConflict))
}
