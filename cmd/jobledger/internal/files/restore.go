package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/keyframe"
	"jobledger/projection/status"
)

// RestoreOptions say what is restored where.
type RestoreOptions struct {
	Backup string // the path of a file that Backup made
	Ledger string // the path of the ledger, which may be missing
	Actor  string // for the event restored
	Force  bool   // restore even if events are lost, workers seem to be alive, or the ledger cannot be read

	Now func() time.Time // nil: time.Now
}

// Restored describes what Restore did.
type Restored struct {
	Path string // of the ledger, absolute and without links
	Kept string // where the replaced ledger is; empty if there was none

	// What the backup holds.
	Events int64
	At     time.Time // of the last event
	Jobs   int64
	Queued int64
	Held   int64 // claimed or running

	// Lost is what the replaced ledger held and the backup does not. It is known if Compared is true: there was
	// a ledger, and it could be read.
	Lost     audit.Lost
	Compared bool
}

// Restore puts a copy of a backup in the place of a ledger, which keeps its content under another name. The
// copy is checked before anything else is changed, and takes the name in one step. Its last event records the
// restore.
//
// Restore refuses to replace a ledger that is open in any process. Unless Force is set, it also refuses where
// events would be lost, where workers seem to be alive, or where the ledger cannot be read.
//
// Errors: ErrNoBackup, ErrUnsound, ErrSameFile, ErrLeftover, ErrForeign, ErrUnreadable, ErrOwner; InUseError,
// AtWorkError, LossError. When ctx ends before the ledger is replaced, the error is ctx's.
func Restore(ctx context.Context, o RestoreOptions) (Restored, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &restore{RestoreOptions: o}
	defer r.discard()
	err := r.run(ctx)
	if err != nil && ctx.Err() != nil && !r.replacing {
		err = refuse(ctx.Err(), "interrupted; the ledger is as it was")
	}
	return r.done, err
}

// restore is one restore under way.
type restore struct {
	RestoreOptions
	from       string // Backup as an absolute path
	copy       *staging
	before     fs.FileInfo // the ledger to be replaced; nil: there is none
	unreadable error       // why that cannot be read; nil: it can
	head       head        // of that, where it is sealed
	replacing  bool        // the ledger may have been replaced from here on
	done       Restored
}

func (r *restore) run(ctx context.Context) error {
	if err := r.resolve(); err != nil {
		return err
	}
	if err := r.stage(ctx); err != nil {
		return err
	}
	if r.before == nil {
		if err := r.record(ctx); err != nil {
			return err
		}
		r.replacing = true
		return r.copy.link()
	}
	if err := r.migrate(ctx); err != nil {
		return err
	}
	if err := r.precheck(ctx, ledger.InspectFile); err != nil {
		return err
	}
	lock, err := ledger.LockExclusive(ctx, r.done.Path, r.unreadable != nil)
	if errors.Is(err, ledger.ErrBusy) {
		return inUse(r.done.Path)
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	if r.unreadable == nil {
		if err := r.precheck(ctx, ledger.InspectFileOnly); err != nil { // again: now no other process can write
			return err
		}
	}
	if err := r.record(ctx); err != nil {
		return err
	}
	return r.replace(lock)
}

// resolve finds the paths of the backup and of the ledger.
func (r *restore) resolve() (err error) {
	if r.from, err = filepath.Abs(r.Backup); err != nil {
		return err
	}
	path, err := filepath.Abs(r.Ledger)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	r.done.Path = path
	r.before, err = os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.before = nil
		return checkFree(path)
	case err != nil:
		return err
	}
	from, err := os.Stat(r.from)
	if err == nil && os.SameFile(from, r.before) {
		return refuse(ErrSameFile, "%s is the ledger itself", r.Backup)
	}
	return nil // precheck finds out whether it is a ledger
}

// stage copies the backup and checks the copy.
func (r *restore) stage(ctx context.Context) error {
	var problems []string
	err := ledger.InspectFile(ctx, r.from, func(tx *ledger.Tx, _ ledger.FileFacts) (err error) {
		problems, err = tx.Integrity(ctx)
		return err
	})
	if err != nil {
		return r.notABackup(err)
	}
	if len(problems) > 0 {
		return r.unsound("SQLite says: " + problems[0])
	}
	if err := r.copyBackup(ctx); err != nil {
		return err
	}
	failpoint.Hit("copied")
	var v audit.Verified
	err = r.copy.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		if v, err = audit.Verify(ctx, tx, nil); err != nil || len(v.Findings) > 0 {
			return err
		}
		return r.count(ctx, tx)
	})
	if len(v.Findings) > 0 {
		f := v.Findings[0]
		return r.unsound(fmt.Sprintf("%s %s", f.Code, f.Detail))
	}
	if err == nil {
		err = keyframe.Fill(ctx, r.copy.Store)
	}
	return err
}

// copyBackup copies the backup to a staging and opens it, which brings its schema up to date.
func (r *restore) copyBackup(ctx context.Context) (err error) {
	if r.copy, err = newStaging(r.done.Path); err != nil {
		return err
	}
	if err := ledger.CopyFile(ctx, r.from, r.copy.temp); err != nil {
		return fmt.Errorf("copy %s: %w", r.Backup, err)
	}
	store, err := ledger.OpenExisting(ctx, r.copy.temp)
	if err != nil {
		return fmt.Errorf("copy %s: %w", r.Backup, err)
	}
	r.copy.Service = service(store)
	return nil
}

// count notes what the backup holds.
func (r *restore) count(ctx context.Context, tx *ledger.Tx) (err error) {
	if r.done.Events, err = tx.Tail(ctx); err != nil {
		return err
	}
	last, _, err := tx.OneEvent(ctx, ledger.Filter{Last: true})
	if err != nil {
		return err
	}
	r.done.At = last.At
	queues, err := status.Queues{At: projection.Now(r.Now())}.Read(ctx, tx)
	for _, q := range queues {
		for state, n := range q.Jobs {
			r.done.Jobs += n
			switch {
			case state == event.Queued:
				r.done.Queued += n
			case state.Held():
				r.done.Held += n
			}
		}
	}
	return err
}

func (r *restore) notABackup(err error) error {
	switch {
	case errors.Is(err, ledger.ErrNoLedger):
		return refuse(ErrNoBackup, "there is no backup at %s", r.Backup)
	case errors.Is(err, ledger.ErrNotALedger):
		return refuse(ErrNoBackup, "%w", err)
	case errors.Is(err, ledger.ErrDamaged):
		return r.unsound(err.Error())
	}
	return err
}

func (r *restore) unsound(why string) error {
	return refuse(ErrUnsound, "%s is not whole, and was not restored: %s", r.Backup, why)
}

// record appends the event restored to the copy and makes the copy durable.
func (r *restore) record(ctx context.Context) error {
	from := strings.ToValidUTF8(r.from, "?")
	if len(from) > commands.MaxReason {
		from = filepath.Base(from)
	}
	body := event.Restored{From: from, Events: r.done.Events, HeadSize: r.head.size, HeadRoot: r.head.root}
	if r.done.Compared {
		body.Lost = new(int(r.done.Lost.Events))
	}
	if err := r.copy.Restored(ctx, r.Actor, body); err != nil {
		return err
	}
	if err := r.copy.close(); err != nil {
		return err
	}
	failpoint.Hit("recorded")
	return nil
}

// maxKept is how many names for the replaced ledger are tried, where there was more than one in a second.
const maxKept = 99

// replace gives the copy the name of the ledger, and the ledger another name.
func (r *restore) replace(lock *ledger.ExclusiveLock) (err error) {
	if err := copyOwner(r.copy.temp, r.before); err != nil {
		return refuse(ErrOwner, "give the new ledger to the owner of the old one: %w", err)
	}
	r.replacing = true
	r.done.Kept, err = replaceKeeping(lock, r.done.Path, r.copy.temp, r.Now())
	return err
}

// replaceKeeping gives the ledger's name to the file fresh, and the ledger a name with the time in it, which
// it returns.
func replaceKeeping(lock *ledger.ExclusiveLock, path, fresh string, now time.Time) (name string, err error) {
	kept := path + ledger.KeptSuffix + now.UTC().Format("20060102T150405Z")
	name = kept
	for n := 2; ; n++ {
		err := lock.Replace(fresh, name)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrExist) || n > maxKept {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", kept, n)
	}
}

func (r *restore) discard() {
	if r.copy != nil {
		r.copy.discard()
	}
}
