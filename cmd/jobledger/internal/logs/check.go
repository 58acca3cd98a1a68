package logs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/audit"
)

// The codes of findings.
const (
	FindLog        = "L01" // a file differs from the digest in the event
	FindUnreadable = "L02" // a file cannot be read, or is not one that a worker would have made
)

// kinds are those of the events with digests of output.
var kinds = []event.Kind{event.KindSucceeded, event.KindFailed, event.KindReleased}

// Counts are how many files, and streams without one, were in which state.
type Counts struct {
	Checked   int64 `json:"checked"`   // files whose digest was compared; of these:
	Cut       int64 `json:"cut"`       // the digest is that of the part that was kept
	Differing int64 `json:"differing"` // they hold something else
	SizeOnly  int64 `json:"size_only"` // cut files of older versions, of which only the sizes were compared
	Missing   int64 `json:"missing"`   // streams without a file: removed, kept on another host, or not kept
	// files of jobs that were erased, and the salts of their digests with them
	Erased     int64 `json:"erased"`
	Unreadable int64 `json:"unreadable"` // files that could not be read, and so not checked
}

// Report is what a check has found.
type Report struct {
	Counts
	Findings []audit.Finding // of differing files, at most maxFindings
}

const maxFindings = 1000

// stream is one stream of an attempt that has ended.
type stream struct {
	event   event.Event
	stderr  bool
	logged  attemptlog.Stream
	salt    []byte
	folder  string
	present bool // there is a file
}

func (s stream) path() string {
	return attemptlog.File(s.folder, s.event.Job, s.event.Attempt, s.stderr)
}

// page is how many events are read in one snapshot: files are read between snapshots.
const page = 200

// Check compares every file in folder with its event, for the events after one pos up to another.
func Check(ctx context.Context, store *ledger.Store, folder string, after, until int64) (r Report,
	err error) {
	for after < until {
		var streams []stream
		f := ledger.Filter{Kinds: kinds, After: after, Until: until, Limit: page}
		after = until
		err := store.Read(ctx, func(tx *ledger.Tx) (err error) {
			streams, err = read(ctx, tx, folder, f, func(pos int64, last bool) {
				if !last {
					after = pos
				}
			})
			return err
		})
		if err != nil {
			return r, err
		}
		for _, s := range streams {
			r.add(s)
		}
	}
	return r, nil
}

// Recent is Check of the latest attempts, in bounded time: up to limit of those that ended within the last
// events, as long as the sizes of their files add up to no more than size bytes.
func Recent(ctx context.Context, tx *ledger.Tx, folder string, limit int, events, size int64) (r Report,
	err error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return r, err
	}
	f := ledger.Filter{Kinds: kinds, After: max(0, tail-events), Limit: limit, Last: true}
	streams, err := read(ctx, tx, folder, f, func(int64, bool) {})
	for _, s := range slices.Backward(streams) {
		if info, err := os.Lstat(s.path()); err == nil {
			if size -= info.Size(); size < 0 {
				break
			}
		}
		r.add(s)
	}
	return r, err
}

// read returns the streams of the events that f selects. It calls seen with the pos of the last event, and
// whether f selects no more.
func read(ctx context.Context, tx *ledger.Tx, folder string, f ledger.Filter,
	seen func(pos int64, last bool)) (
	streams []stream, err error) {
	n, pos := 0, int64(0)
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		n, pos = n+1, e.Pos
		o := OutputOf(e)
		for _, stderr := range []bool{false, true} {
			logged := attemptlog.StreamOf(o, stderr)
			if logged.SHA256 != "" {
				streams = append(streams, stream{event: e, stderr: stderr, logged: logged,
					folder: folder})
			}
		}
	}
	seen(pos, n < f.Limit)
	for i := range streams {
		s := &streams[i]
		if _, err := os.Lstat(s.path()); err == nil || !errors.Is(err, fs.ErrNotExist) {
			s.present = true
			if s.salt, _, _, err = tx.Body(ctx, s.event.N); err != nil {
				return nil, err
			}
		}
	}
	return streams, nil
}

// OutputOf returns what e says of the output of a command.
func OutputOf(e event.Event) event.Output {
	switch b := e.Body.(type) {
	case *event.Succeeded:
		return b.Output
	case *event.Failed:
		return b.Output
	case *event.Released:
		return b.Output
	}
	return event.Output{}
}

// End returns what the event at the end of an attempt says of the output. It says nothing for an attempt that
// goes on, or that did not end by its worker.
func End(ctx context.Context, tx *ledger.Tx, job int64, attempt int) (o event.Output, err error) {
	for e, err := range tx.Events(ctx, ledger.Filter{Job: job, Kinds: kinds}) {
		if err != nil {
			return o, err
		}
		if e.Attempt == attempt {
			o = OutputOf(e)
		}
	}
	return o, nil
}

// add checks one stream.
func (r *Report) add(s stream) {
	if !s.present {
		r.Missing++
		return
	}
	size, state, err := s.check()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Missing++
		return
	case err != nil:
		r.Unreadable++
		r.find(s.finding(FindUnreadable, fmt.Sprintf("what the command of attempt %d wrote cannot be read: %v",
			s.event.Attempt, err)))
		return
	}
	switch state {
	case attemptlog.Unchecked:
		r.Erased++
		return
	case attemptlog.SizeOnly:
		r.SizeOnly++
		return
	case attemptlog.Cut:
		r.Cut++
	case attemptlog.Differs:
		r.Differing++
		r.find(s.finding(FindLog, fmt.Sprintf("%s has %s that %s not what the command of attempt %d wrote, %s",
			s.path(), words.Count(size, "byte"), words.Plural(size, "is", "are"), s.event.Attempt,
			words.Count(s.logged.Bytes, "byte"))))
	}
	r.Checked++
}

func (r *Report) find(f audit.Finding) {
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, f)
	}
}

// check compares the file with the event.
func (s stream) check() (size int64, state attemptlog.State, err error) {
	file, err := attemptlog.Open(s.folder, s.event.Job, s.event.Attempt, s.stderr)
	if err != nil {
		return 0, state, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, state, err
	}
	state, err = s.logged.Check(file, info.Size(), s.salt)
	return info.Size(), state, err
}

func (s stream) finding(code, detail string) audit.Finding {
	field := "stdout"
	if s.stderr {
		field = "stderr"
	}
	return audit.Finding{Code: code, Pos: s.event.Pos, Job: s.event.Job, Field: field, Detail: detail}
}
