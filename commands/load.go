package commands

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

// LineError says which line of a history is wrong. Lines count from 1, and line n holds event n.
type LineError struct {
	Line int64
	Err  error
}

// Error says where and why.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns why.
func (e *LineError) Unwrap() error { return e.Err }

// ErrNotEmpty means that a history can go into an empty ledger only.
var ErrNotEmpty = fmt.Errorf("%w: the ledger has events already", ErrConflict)

// Loaded says what became of a history.
type Loaded struct {
	Events  int64
	Jobs    int64
	Missing int64    // payloads and results that its events name, unerased, and that it did not bring along
	Paused  []string // the queues that were paused for that reason: nobody shall run a job without its payload

	// Findings are what is wrong with a history that Replay has taken over as it is.
	Findings []projection.Finding
}

// Import writes a history, from its first event on, into this ledger, which must be empty: all of it, in one
// transaction, or nothing. Positions are numbered anew; all else stays as it was. Everything is checked: each line,
// each transition, each digest, and the result as Verify does. The last event says that it was imported.
//
// lines may be ranged over twice. progress, if not nil, is told now and then how many events are done. Errors:
// LineError; ErrNotEmpty.
func (s *Service) Import(ctx context.Context, actor, from string, lines iter.Seq2[ledger.Line, error], progress func(events int64)) (done Loaded, err error) {
	if err := CheckActor(actor); err != nil {
		return done, err
	}
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		if done, err = load(ctx, tx, lines, progress); err != nil {
			return err
		}
		if len(done.Findings) > 0 {
			f := done.Findings[0]
			return at(f.Pos, fmt.Errorf("%s: %s", f.Code, f.Detail))
		}
		return finishLoad(ctx, tx, actor, from, &done)
	})
	return done, err
}

// Replay is Import of events that are at home in another ledger. Nothing is added to them, unless bodies are missing.
// What Verify finds is told, and no error: a copy of a damaged history is what somebody may want to look into.
func (s *Service) Replay(ctx context.Context, actor, from string, lines iter.Seq2[ledger.Line, error], progress func(events int64)) (done Loaded, err error) {
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		if done, err = load(ctx, tx, lines, progress); err != nil || done.Missing == 0 {
			return err
		}
		return finishLoad(ctx, tx, actor, from, &done)
	})
	return done, err
}

const progressEvery = 5000 // events

func load(ctx context.Context, tx *ledger.Tx, lines iter.Seq2[ledger.Line, error], progress func(int64)) (done Loaded, err error) {
	tail, err := tx.Tail(ctx)
	if err == nil && tail != 0 {
		err = ErrNotEmpty
	}
	if err != nil {
		return done, err
	}
	loader := projection.NewLoader(tx)
	for line, err := range ledger.Prefetch(checked(lines)) {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		failpoint.Hit("line")
		n := loader.Events() + 1
		if err == nil {
			err = loader.Add(ctx, line)
		}
		if err != nil {
			return done, at(n, err)
		}
		if progress != nil && n%progressEvery == 0 {
			progress(n)
		}
	}
	if err := loader.End(ctx); err != nil {
		return done, err
	}
	findings, missing, orphans, err := loader.Check(ctx)
	if err != nil {
		return done, err
	}
	return Loaded{Events: loader.Events(), Jobs: loader.Jobs(), Missing: missing, Paused: orphans, Findings: findings}, nil
}

// checked yields lines up to the first that is wrong by itself.
func checked(lines iter.Seq2[ledger.Line, error]) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		n := int64(0)
		for line, err := range lines {
			if n++; err == nil {
				err = checkLine(n, &line)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// at says on which line err came up, unless it is no line's fault.
func at(line int64, err error) error {
	if storeFailed(err) || line == 0 {
		return err
	}
	return &LineError{line, err}
}

// finishLoad records the import and pauses the queues whose jobs have lost their payload.
func finishLoad(ctx context.Context, tx *ledger.Tx, actor, from string, done *Loaded) error {
	err := tx.Append(ctx, ledger.Event{Pos: tx.Next(), At: tx.At(), Actor: actor,
		Body: &ledger.Imported{From: from, Events: done.Events, MissingBodies: done.Missing}})
	if err != nil {
		return err
	}
	var paused []string
	for _, name := range done.Paused {
		q, err := projection.GetQueue(ctx, tx, name)
		if err != nil {
			return err
		}
		if q.Paused {
			continue
		}
		e := ledger.Event{Pos: tx.Next(), At: tx.At(), Actor: actor, Body: &ledger.QueuePaused{Queue: name, Reason: "imported without payloads"}}
		if q, err = projection.EvolveQueue(q, e); err != nil {
			return err
		}
		if err := projection.PutQueue(ctx, tx, q); err != nil {
			return err
		}
		if err := tx.Append(ctx, e); err != nil {
			return err
		}
		paused = append(paused, name)
	}
	done.Paused = paused
	return nil
}

// checkLine says what is wrong with line n by itself. The tables and the claiming rest on it: a history is somebody
// else's word.
func checkLine(n int64, l *ledger.Line) error {
	switch {
	case n == 1 && l.Pos != 1:
		return fmt.Errorf("the history begins with event %d; only one that begins with event 1 can be taken in", l.Pos)
	case l.Pos != n:
		return fmt.Errorf("it is event %d, but event %d should follow here", l.Pos, n)
	case l.Actor == "":
		return errors.New("actor is missing")
	}
	for field, text := range map[string]string{"actor": l.Actor, "worker": l.Worker.Name, "token": l.Token, "host": l.Worker.Host, "boot": l.Worker.Boot} {
		if err := checkText(field, text, MaxReason); err != nil {
			return err
		}
	}
	if err := checkEnvelope(l); err != nil {
		return err
	}
	if e, ok := l.Event.Body.(*ledger.Enqueued); ok {
		return checkEnqueued(l, e)
	}
	if len(l.Body) > MaxPayload {
		return &InvalidError{"result", fmt.Sprintf("of %d bytes", len(l.Body)), "up to 1,048,576 bytes"}
	}
	if field := missingField(l); field != "" {
		return fmt.Errorf("%s of %s is missing", field, l.Kind())
	}
	return nil
}
