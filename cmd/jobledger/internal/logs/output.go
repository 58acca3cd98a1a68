package logs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
	"jobledger/projection"
)

// Output is one stream of one attempt.
type Output struct {
	Job     projection.Job
	Attempt int
	Stderr  bool
	Folder  string // of all logs
}

// Path returns the name of the file.
func (o Output) Path() string { return attemptlog.File(o.Folder, o.Job.ID, o.Attempt, o.Stderr) }

// Open opens the file.
func (o Output) Open() (*os.File, error) {
	return attemptlog.Open(o.Folder, o.Job.ID, o.Attempt, o.Stderr)
}

// Stream returns the name of the stream.
func (o Output) Stream() string {
	if o.Stderr {
		return "stderr"
	}
	return "stdout"
}

// Checked is a file and what the event at the end of its attempt says.
type Checked struct {
	Size   int64 // of the file, or of as much as was read
	Logged attemptlog.Stream
	State  attemptlog.State
	Lacks  int64 // bytes that the command wrote, and that are missing from the file without a mark
}

// Logged returns what the event at the end of the attempt says, and the job's salt.
func (o Output) Logged(ctx context.Context, store *ledger.Store) (logged attemptlog.Stream, salt []byte,
	err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		end, err := End(ctx, tx, o.Job.N, o.Attempt)
		if logged = attemptlog.StreamOf(end, o.Stderr); err != nil || logged.SHA256 == "" {
			return err
		}
		salt, _, _, err = tx.Body(ctx, o.Job.N)
		return err
	})
	return logged, salt, err
}

// Check compares size bytes of file with the event at the end of the attempt.
func (o Output) Check(ctx context.Context, store *ledger.Store, file io.ReaderAt, size int64) (Checked,
	error) {
	checked := Checked{Size: size}
	logged, salt, err := o.Logged(ctx, store)
	if err == nil {
		checked.Logged = logged
		checked.State, err = logged.Check(file, size, salt)
		checked.Lacks = logged.Lacks(file, size)
	}
	return checked, err
}

// followPoll is how often Follow looks for more.
const followPoll = 100 * time.Millisecond

// Follow gives emit what is written, until the attempt ends, and checks it then. An attempt that ended
// without a file is an error that wraps [fs.ErrNotExist]. skipped is how many bytes before text are not
// shown, because they were left out of the file first; [SomeSkipped] where that is not known.
func (o Output) Follow(ctx context.Context, store *ledger.Store,
	emit func(text []byte, skipped int64) error) (checked Checked, err error) {
	var t tail
	defer t.close()
	for {
		goesOn, err := o.goesOn(ctx, store) // before it is read, so that the last words are not missed
		if err != nil {
			return checked, err
		}
		if err := t.open(o.Open); err != nil && (!goesOn || !errors.Is(err, fs.ErrNotExist)) {
			return checked, err
		}
		for more := t.file != nil; more; {
			var text []byte
			var skipped int64
			if text, skipped, more, err = t.next(); err == nil {
				err = emit(text, skipped)
			}
			if err != nil {
				return checked, err
			}
		}
		if !goesOn {
			if err := emit(t.rest, 0); err != nil {
				return checked, err
			}
			return o.Check(ctx, store, t.file, t.read)
		}
		select {
		case <-ctx.Done():
			return checked, ctx.Err()
		case <-time.After(followPoll):
		}
	}
}

// goesOn reports whether the attempt has not ended.
func (o Output) goesOn(ctx context.Context, store *ledger.Store) (held bool, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		j, _, err := projection.Get(ctx, tx, o.Job.ID)
		held = j.State.Held() && j.Attempt == o.Attempt
		return err
	})
	return held, err
}
