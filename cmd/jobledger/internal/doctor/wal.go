package doctor

import (
	"context"
	"fmt"
	"os"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/ledger"
)

// strayWAL finds a -wal file that is not this ledger's by what SQLite makes of the two together. damaged says that
// they do not go together.
func (d *examination) strayWAL(ctx context.Context, damaged bool) {
	const remedy = "stop all that use it, move -wal and -shm away (keep them: they may hold the last commands), then 'jobledger verify'"
	name := d.real + "-wal"
	switch wal, err := os.Stat(name); {
	case err != nil || wal.Size() == 0:
	case damaged && d.wholeAlone(ctx):
		d.problem(CodeStray, remedy, "by itself, without %s, the file is whole: that one is damaged, or of another ledger", name)
	case !damaged && d.parts(ctx):
		d.problem(CodeStray, remedy, "with %s the ledger tells another history than its file by itself: that one is of another ledger", name)
	}
}

// wholeAlone reports whether nothing is wrong with the file by itself.
func (d *examination) wholeAlone(ctx context.Context) bool {
	whole := false
	err := ledger.InspectFileOnly(ctx, d.dsn, func(tx *ledger.Tx, _ ledger.FileFacts) error {
		problems, err := tx.Integrity(ctx)
		if err == nil && len(problems) == 0 {
			problems, err = tx.Guards(ctx)
		}
		whole = len(problems) == 0
		return err
	})
	return whole && err == nil
}

// parts reports whether the last event in the file by itself is another one when the -wal file is read with it. While
// a checkpoint runs, the file by itself may be anything, so it must be so twice.
func (d *examination) parts(ctx context.Context) bool {
	for range 2 {
		var alone, both ledger.Event
		err := ledger.InspectFileOnly(ctx, d.dsn, func(tx *ledger.Tx, _ ledger.FileFacts) (err error) {
			alone, err = state.LastEvent(ctx, tx, 0)
			return err
		})
		if err == nil && alone.Pos > 0 {
			err = ledger.InspectFile(ctx, d.dsn, func(tx *ledger.Tx, _ ledger.FileFacts) (err error) {
				both, err = state.LastEvent(ctx, tx, alone.Pos)
				return err
			})
		}
		if err != nil || alone.Pos == 0 || both.Pos == alone.Pos && both.At.Equal(alone.At) && both.Job == alone.Job && both.Actor == alone.Actor {
			return false
		}
		time.Sleep(betweenLooks)
	}
	return true
}

// backlog looks once more: what a short read holds up is moved by then.
func (d *examination) backlog(ctx context.Context, before ledger.FileFacts) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(betweenLooks):
	}
	var now ledger.FileFacts
	err := ledger.InspectFile(ctx, d.dsn, func(_ *ledger.Tx, f ledger.FileFacts) error {
		now = f
		return nil
	})
	if err != nil || now.Backlog < before.Backlog || now.Backlog <= MaxBacklog {
		return
	}
	who := "somebody reads, or began to read, and does not come to an end"
	var readers []string
	for _, h := range ledger.LockHolders(d.Ledger) {
		if h.Reads && !h.Writes && h.PID != os.Getpid() {
			readers = append(readers, fmt.Sprintf("%s (pid %d)", h.Program, h.PID))
		}
	}
	if len(readers) > 0 {
		who = "in the middle of a read: " + some(readers)
	}
	d.problem(CodeWAL, "end the read: a query in a shell that stands still, a program that does not close its rows; then it is taken in by itself",
		"%s in %s-wal cannot be taken into the ledger, and it grows with each command; %s", render.ByteSize(now.Backlog), d.real, who)
}

// journal finds what no ledger in WAL mode has: the rollback journal of another file, which SQLite would play back.
func (d *examination) journal(f ledger.FileFacts) {
	name := d.real + "-journal"
	info, err := os.Stat(name)
	if err == nil && f.WALMode && info.Size() > 0 && d.now().Sub(info.ModTime()) > journalPast {
		d.problem(CodeStray, "mv "+render.QuoteShell(name)+" elsewhere", "%s is there, and a ledger has none: it is left of another file", name)
	}
}
