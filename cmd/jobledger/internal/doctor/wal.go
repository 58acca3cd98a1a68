package doctor

import (
	"context"
	"fmt"
	"os"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// pause is the time between two reads that must agree.
const pause = 300 * time.Millisecond

// strayWAL finds a -wal file of another ledger by what SQLite makes of both files. damaged says that SQLite
// finds the two damaged.
func (d *examination) strayWAL(ctx context.Context, damaged bool) {
	const remedy = "stop all processes that use it, move -wal and -shm away " +
		"(keep them: they may hold the last commands), then 'jobledger verify'"
	name := d.real + "-wal"
	switch wal, err := os.Stat(name); {
	case err != nil || wal.Size() == 0:
	case damaged && d.soundAlone(ctx):
		d.problem(CodeForeignSidecar, remedy,
			"the file is sound without %s: that one is damaged, or belongs to another ledger", name)
	case !damaged && d.differs(ctx):
		d.problem(CodeForeignSidecar, remedy,
			"with %s the ledger has another history than without it: that file belongs to another ledger", name)
	}
}

// soundAlone reports whether the ledger's file has no fault without its -wal file.
func (d *examination) soundAlone(ctx context.Context) bool {
	sound := false
	err := ledger.InspectFileOnly(ctx, d.dsn, func(tx *ledger.Tx, _ ledger.FileFacts) error {
		problems, err := tx.Integrity(ctx)
		if err == nil && len(problems) == 0 {
			problems, err = tx.Guards(ctx)
		}
		sound = len(problems) == 0
		return err
	})
	return sound && err == nil
}

// differs reports whether the last event of the file alone is another one when the -wal file is read too.
// During a checkpoint the file alone may have any content, so it must differ twice.
func (d *examination) differs(ctx context.Context) bool {
	for range 2 {
		var alone, both event.Event
		err := ledger.InspectFileOnly(ctx, d.dsn, func(tx *ledger.Tx, _ ledger.FileFacts) (err error) {
			alone, _, err = tx.OneEvent(ctx, ledger.Filter{Last: true})
			return err
		})
		if err != nil || alone.Pos == 0 {
			return false
		}
		err = ledger.InspectFile(ctx, d.dsn, func(tx *ledger.Tx, _ ledger.FileFacts) (err error) {
			both, _, err = tx.OneEvent(ctx, ledger.Filter{Until: alone.Pos, Last: true})
			return err
		})
		same := both.Pos == alone.Pos && both.At.Equal(alone.At) &&
			both.Job == alone.Job && both.Actor == alone.Actor
		if err != nil || same {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// backlog reads the size of the backlog a second time. A file that only a short read kept is gone by then.
func (d *examination) backlog(ctx context.Context, before ledger.FileFacts) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(pause):
	}
	var now ledger.FileFacts
	err := ledger.InspectFile(ctx, d.dsn, func(_ *ledger.Tx, f ledger.FileFacts) error {
		now = f
		return nil
	})
	if err != nil || now.Backlog < before.Backlog || now.Backlog <= MaxBacklog {
		return
	}
	reason := "a process reads, or began to read, and does not finish"
	var readers []string
	for _, h := range ledger.LockHolders(d.Ledger) {
		if h.Reads && !h.Writes && h.PID != os.Getpid() {
			readers = append(readers, fmt.Sprintf("%s (pid %d)", h.Program, h.PID))
		}
	}
	if len(readers) > 0 {
		reason = "in the middle of a read: " + someOf(readers)
	}
	if info, err := os.Stat(d.real); err == nil { // what was moved last
		reason += "; nothing could be moved since " + d.since(info.ModTime())
	}
	d.problem(CodeWAL,
		"end the read: an open query in a shell, or a program that does not close its rows; "+
			"SQLite then takes it in",
		"%s in %s-wal cannot be taken into the ledger, and it grows with each command; %s",
		words.ByteSize(now.Backlog), d.real, reason)
}

// journal finds the rollback journal of another file, which SQLite would apply to the ledger. A ledger in WAL
// mode has none.
func (d *examination) journal(f ledger.FileFacts) {
	name := d.real + "-journal"
	info, err := os.Stat(name)
	if err == nil && f.WALMode && info.Size() > 0 && d.Now().Sub(info.ModTime()) > journalAge {
		d.problem(CodeForeignSidecar, "mv "+words.QuoteShell(name)+" elsewhere",
			"%s is there, and a ledger has none: it belongs to another file", name)
	}
}
