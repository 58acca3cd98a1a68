// Package load takes histories in: [Import] makes a ledger of the lines of another one, [Replay] a copy for
// reading.
//
//   - import.go: both, in one transaction; steps.go: the same in steps, for a ledger that is not in use yet
//   - check.go: what a line must be on its own
//
// Held by TestImportRoundTripOfRandomHistories, TestImportInStepsNamesTheLine and
// TestImportAfterARefusedOne of package commands, and by TestImportRefusesDamagedLines of the program.
// This package is not part of the Go API, and may change in any release.
package load

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"jobledger/commands"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/ledger/prefetch"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/keyframe"
)

// LineError names the line of a history that is wrong. Lines count from 1, and line n holds event n.
type LineError struct {
	Line int64
	Err  error

	ofStore bool // the line could not be written, which may have another cause
}

// Error says where and why.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns why.
func (e *LineError) Unwrap() error { return e.Err }

// ErrNotEmpty means that a history can only be imported into an empty ledger.
var ErrNotEmpty = fmt.Errorf("%w: the ledger has events already", commands.ErrConflict)

// Loaded is the report of an Import or a Replay.
type Loaded struct {
	Events  int64
	Jobs    int64
	Missing int64    // payloads and results that the history lacks although they were not erased
	Paused  []string // the queues that were paused because their jobs lack payloads

	// Findings are what is wrong with the history. Replay accepts them.
	Findings []audit.Finding
}

// Import writes a history, from its first event on, into this ledger, which must be empty: all of it, in one
// transaction, or nothing. The numbers of jobs are assigned again; all else stays as it was. Everything is
// checked: each line, each transition, each digest, and the result as audit.Verify does. The last event says
// that the history was imported.
//
// lines may be ranged over twice. progress, if not nil, is called from time to time with the number of events
// done. Errors: LineError; ErrNotEmpty; with Service.Staging ErrLoadAtOnce.
func Import(ctx context.Context, s *commands.Service, actor, from string, lines iter.Seq2[event.Line, error],
	progress func(events int64)) (done Loaded, err error) {
	if err := commands.CheckActor(actor); err != nil {
		return done, err
	}
	return load(ctx, s, lines, progress, func(tx *ledger.Tx, done *Loaded) error {
		if len(done.Findings) > 0 {
			f := firstPlaced(done.Findings)
			return at(f.Pos, fmt.Errorf("%s: %s", f.Code, f.Detail))
		}
		return finishImport(ctx, tx, actor, from, time.Time{}, done)
	})
}

// Replay is Import of a copy of another ledger, for reading. No event is added to it, unless bodies are
// missing, or something had left that ledger. What audit.Verify finds is reported, and no error: one may want
// to examine the copy of a damaged history.
func Replay(ctx context.Context, s *commands.Service, actor, from string, lines iter.Seq2[event.Line, error],
	progress func(events int64)) (done Loaded, err error) {
	return ReplayAsOf(ctx, s, actor, from, CopyAsOf{}, lines, progress)
}

// CopyAsOf returns the moment of a copy.
type CopyAsOf struct {
	At       time.Time             // zero: the copy is not marked
	Presence []projection.Presence // of the worker processes at that moment, as status.PresenceAsOf has it
}

// ReplayAsOf is Replay into a marked copy: its last event, imported, has the moment, and status.CopyOf finds
// it there. It also gets the presence of the workers, which is not part of the events.
func ReplayAsOf(ctx context.Context, s *commands.Service, actor, from string, c CopyAsOf,
	lines iter.Seq2[event.Line, error], progress func(events int64)) (done Loaded, err error) {
	return load(ctx, s, lines, progress, func(tx *ledger.Tx, done *Loaded) error {
		for _, p := range c.Presence {
			if err := projection.PutPresence(tx, p.Worker, p.SeenAt); err != nil {
				return err
			}
		}
		if done.Missing == 0 && c.At.IsZero() {
			r, err := projection.Removed(ctx, tx)
			if err != nil || r.Pos == 0 {
				return err
			}
		}
		return finishImport(ctx, tx, actor, from, c.At, done)
	})
}

// firstPlaced returns the first finding that names an event; the first one if none does.
func firstPlaced(findings []audit.Finding) audit.Finding {
	placed := slices.IndexFunc(findings, func(f audit.Finding) bool { return f.Pos > 0 })
	return findings[max(placed, 0)]
}

const progressEvery = 5000 // events

// load writes the history of lines into the ledger, and what finish adds to it.
func load(ctx context.Context, s *commands.Service, lines iter.Seq2[event.Line, error], progress func(int64),
	finish func(*ledger.Tx, *Loaded) error) (done Loaded, err error) {
	if s.Staging {
		return loadInSteps(ctx, s, lines, progress, finish)
	}
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		if done, err = loadAtOnce(ctx, tx, lines, progress); err != nil {
			return err
		}
		return finish(tx, &done)
	})
	if err == nil {
		_ = keyframe.Fill(ctx, s.Store) // of what is done; a sweep adds what is missing
	}
	return done, err
}

// loadAtOnce appends lines to the empty ledger of tx, writes the rows that they add up to, and checks the
// whole.
func loadAtOnce(ctx context.Context, tx *ledger.Tx, lines iter.Seq2[event.Line, error],
	progress func(int64)) (
	done Loaded, err error) {
	if err := wantEmpty(ctx, tx); err != nil {
		return done, err
	}
	loader := audit.NewLoader(tx)
	for line, err := range prefetch.Lines(checked(lines)) {
		if err := addLine(ctx, loader, line, err, progress); err != nil {
			return done, err
		}
	}
	if err := loader.End(ctx); err != nil {
		return done, at(0, err)
	}
	findings, missing, orphans, err := loader.Check(ctx)
	if err != nil {
		return done, err
	}
	return Loaded{Events: loader.Events(), Jobs: loader.Jobs(), Missing: missing, Paused: orphans,
		Findings: findings}, nil
}

func wantEmpty(ctx context.Context, tx *ledger.Tx) error {
	tail, err := tx.Tail(ctx)
	if err == nil && tail != 0 {
		err = ErrNotEmpty
	}
	return err
}

// addLine adds the next line, or reports err, which came in its place.
func addLine(ctx context.Context, loader *audit.Loader, line event.Line, err error,
	progress func(int64)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	failpoint.Hit("line")
	n := loader.Events() + 1
	if err == nil {
		if err = loader.Add(ctx, line); err != nil && !errors.Is(err, projection.ErrIllegal) {
			return writingLine(at(n, err))
		}
	}
	if err != nil {
		return at(n, err)
	}
	if progress != nil && n%progressEvery == 0 {
		progress(n)
	}
	return nil
}

// checked yields lines up to the first that is wrong on its own.
func checked(lines iter.Seq2[event.Line, error]) iter.Seq2[event.Line, error] {
	return func(yield func(event.Line, error) bool) {
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

// at adds the line to err, unless no line caused it.
func at(line int64, err error) error {
	if same, ok := errors.AsType[*audit.CollisionError](err); ok { // noticed later
		line = same.Pos
	}
	if commands.StoreFailed(err) || line == 0 {
		return err
	}
	return &LineError{Line: line, Err: err}
}

// writingLine marks an error of at that may be the store's.
func writingLine(err error) error {
	if line, ok := errors.AsType[*LineError](err); ok {
		line.ofStore = true
	}
	return err
}

// finishImport records the import and pauses the queues whose jobs have lost their payload. asOf is zero
// unless the ledger is a copy for looking at.
func finishImport(ctx context.Context, tx *ledger.Tx, actor, from string, asOf time.Time,
	done *Loaded) error {
	body := &event.Imported{From: from, Events: done.Events, MissingBodies: done.Missing, AsOf: asOf}
	if _, err := journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: body}); err != nil {
		return err
	}
	var paused []string
	for _, name := range done.Paused {
		changed, err := commands.PauseIn(ctx, tx, actor, name, "imported without payloads")
		if err != nil {
			return err
		}
		if changed {
			paused = append(paused, name)
		}
	}
	done.Paused = paused
	return nil
}
