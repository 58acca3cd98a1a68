package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"jobledger/commands"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/segment"
	"jobledger/projection"
)

// ErrNotDescribed means that what a file is could not be recorded, though the file may be whole.
var ErrNotDescribed = errors.New("archive: files are not described")

// Describe reads the files of the segments that older programs archived, and records what these did not: the
// digests of the parts of each whole file, once, and with the last one in which queues the jobs were of which
// no removed event says it. Until then a question about a job that may have left reads these files. It calls
// fn with each file that it read; with all it reads every file, as [Check] does. Errors: ErrNotDescribed,
// after all files were read; those of Check.
func Describe(ctx context.Context, s *commands.Service, actor, dir string, all bool,
	fn func(File) error) error {
	if err := commands.CheckActor(actor); err != nil {
		return err
	}
	var refused error
	c := checker{store: s.Store, whole: true, rest: !all, describe: func(f File) error {
		if refused == nil {
			refused = describe(ctx, s, actor, dir, f)
		}
		return ctx.Err()
	}}
	if err := c.all(ctx, dir, fn); err != nil || refused == nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotDescribed, refused)
}

// describe records what the parts of f are, unless that was done meanwhile.
func describe(ctx context.Context, s *commands.Service, actor, dir string, f File) error {
	for {
		what := event.ArchiveDescribed{Hi: f.Hi, Parts: f.Parts}
		removed, last, err := int64(0), false, error(nil)
		err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
			segments, err := projection.Segments(ctx, tx, 0)
			last = !slices.ContainsFunc(segments, func(s projection.Segment) bool {
				return len(s.Parts) == 0 && s.Hi != f.Hi
			})
			if err == nil {
				removed, err = tx.LastOf(ctx, event.KindRemoved)
			}
			return err
		})
		if err == nil && last {
			what.Left, err = unnamed(ctx, s.Store, dir)
		}
		if err != nil {
			return err
		}
		again := false
		err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
			segments, err := projection.Segments(ctx, tx, 0)
			if err != nil {
				return err
			}
			there := slices.IndexFunc(segments, func(s projection.Segment) bool { return s.Hi == f.Hi })
			if there < 0 || len(segments[there].Parts) > 0 {
				return nil
			}
			now, err := tx.LastOf(ctx, event.KindRemoved)
			if again = last && now != removed; err != nil || again {
				return err // jobs left while they were counted
			}
			_, err = journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: &what})
			return err
		})
		if err != nil || !again {
			return err
		}
	}
}

// unnamed returns the queues and final states of the jobs that no removed event describes: those that ended
// in the files and are not in the ledger, without the described ones.
func unnamed(ctx context.Context, store *ledger.Store, dir string) (left []event.Left, err error) {
	var r projection.Removal
	var files []File
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		if r, err = projection.Removed(ctx, tx); err == nil && r.Departed.Unnamed > 0 {
			files, err = ListIn(ctx, tx, dir)
		}
		return err
	})
	if err != nil || r.Departed.Unnamed == 0 {
		return nil, err
	}
	var all projection.Departed
	later := make(map[int64]bool) // jobs with lines in a later file, which has all of theirs
	for _, f := range slices.Backward(files) {
		jobs, err := jobsIn(&f)
		if err != nil {
			return nil, err
		}
		var ended []int64
		for n, j := range jobs {
			if j.state.Final() && !later[n] {
				ended = append(ended, n)
			}
			if n <= f.Lo {
				later[n] = true
			}
		}
		err = store.Read(ctx, func(tx *ledger.Tx) error {
			live, err := projection.GetMany(ctx, tx, ended)
			ended = slices.DeleteFunc(ended, func(n int64) bool { return live[n].N != 0 })
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, n := range ended {
			all.AddJobs(jobs[n].queue, jobs[n].state, 1)
		}
	}
	left, ok := r.Departed.Unsaid(all)
	if !ok {
		return nil, fmt.Errorf("%w: by the files %d jobs have left, and by the ledger %d", segment.ErrDamaged,
			all.Jobs(), r.Departed.Jobs())
	}
	return left, nil
}

// fate is the queue of a job, and its state.
type fate struct {
	queue string
	state event.State
}

// jobsIn returns the jobs with lines in f, by their numbers, as they are at its end.
func jobsIn(f *File) (jobs map[int64]fate, err error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, f.orMissing(err)
	}
	defer file.Close()
	jobs = make(map[int64]fate)
	numbers, queues, sum := make(map[event.JobID]int64), make(map[string]string), sha256.New()
	for m, err := range segment.Members(io.TeeReader(file, sum)) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		for _, e := range m.Events {
			if first, ok := e.Body.(*event.Enqueued); ok {
				if queues[first.Queue] == "" {
					queues[first.Queue] = strings.Clone(first.Queue)
				}
				numbers[e.Job] = e.Pos
				jobs[e.Pos] = fate{queue: queues[first.Queue]}
			}
			if n := numbers[e.Job]; e.Kind().HasSeq() {
				jobs[n] = fate{jobs[n].queue, e.To}
			}
		}
	}
	return jobs, f.compareSum(sum)
}
