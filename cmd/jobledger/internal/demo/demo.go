package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

const (
	queue    = "demo"
	maxFiles = 200
)

// Options describe a demo.
type Options struct {
	DB      string    // the DSN of the ledger to be made
	ShownDB string    // the same without a password, for what is printed
	Folder  string    // whose files the jobs are about
	Make    bool      // where Folder has no file, make small ones in a temporary folder meanwhile
	Force   bool      // overwrite the ledger of an earlier demo, if it is a file
	Actor   string    // for the events enqueued
	Out     io.Writer // for a line about each step; an error of it does not end the demo
}

// Result describes a demo that has succeeded.
type Result struct {
	Jobs   int
	Victim event.JobID // the job that the killed worker held
}

// The reasons for which a demo fails, besides the errors of the ledger.
var (
	ErrExists   = errors.New("demo: the ledger exists") // nothing was changed
	ErrNoFiles  = errors.New("demo: no files")          // nothing was changed
	ErrWrongSum = errors.New("demo: a result is wrong") // a bug, or a file has changed
	ErrTimeout  = errors.New("demo: the jobs take too long")
)

// failure is an error with a text of its own that is one of the reasons above.
type failure struct {
	text   string
	reason error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.reason }

func failf(reason error, format string, args ...any) error {
	return &failure{fmt.Sprintf(format, args...), reason}
}

// demo is one demo under way.
type demo struct {
	Options
	service *commands.Service
	sums    map[event.JobID]string // the sum that each job must find
	ids     []event.JobID
}

// say prints a line.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.Out, format+"\n", args...)
}

// Run makes the ledger, runs the workers and checks the results. Errors: ErrExists, ErrNoFiles, ErrWrongSum,
// ErrTimeout.
func Run(ctx context.Context, o Options) (Result, error) {
	d := &demo{Options: o, sums: make(map[event.JobID]string)}
	if err := d.makeRoom(ctx); err != nil {
		return Result{}, err
	}
	files, err := filesOf(d.Folder)
	if err != nil {
		return Result{}, err
	}
	if len(files) == 0 {
		if !d.Make {
			return Result{}, failf(ErrNoFiles, "there is no regular file in %s", d.Folder)
		}
		made, err := makeFiles()
		if err != nil {
			return Result{}, err
		}
		defer os.RemoveAll(made)
		d.say("%s has no files; the jobs are about %d small ones in %s, which are removed at the end", d.Folder,
			maxFiles, made)
		d.Folder = made
		if files, err = filesOf(made); err != nil {
			return Result{}, err
		}
	}
	store, err := ledger.Open(ctx, d.DB)
	if err != nil {
		return Result{}, err
	}
	defer store.Close()
	if failpoint.Shifted() {
		store.Now = failpoint.Now
	}
	d.service = &commands.Service{Store: store}
	if err := d.enqueue(ctx, files); err != nil {
		return Result{}, err
	}
	d.say("%s enqueued in %s, one for each file of %s", words.Count(int64(len(files)), "job"), d.ShownDB,
		d.Folder)
	victim, err := d.work(ctx)
	if err != nil {
		return Result{}, err
	}
	return Result{len(d.ids), victim}, d.checkSums(ctx)
}

// makeFiles makes small files in a temporary folder.
func makeFiles() (folder string, err error) {
	if folder, err = os.MkdirTemp("", "jobledger-demo-"); err != nil {
		return "", err
	}
	for i := range maxFiles {
		text := fmt.Sprintf("file %d of the demo\n", i+1)
		name := filepath.Join(folder, fmt.Sprintf("file-%03d.txt", i+1))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", errors.Join(err, os.RemoveAll(folder))
		}
	}
	return folder, nil
}

// filesOf returns the absolute paths of the regular, readable files below folder.
func filesOf(folder string) (files []string, err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path == folder:
			return err
		case err != nil:
			return nil // leave out what cannot be read
		case entry.IsDir() && (entry.Name() == ".git" || strings.HasPrefix(entry.Name(), "demo.db")):
			return fs.SkipDir
		case strings.HasPrefix(entry.Name(), "demo.db"), strings.Contains(path, "\n"), !entry.Type().IsRegular():
			return nil
		case len(files) == maxFiles:
			return fs.SkipAll
		}
		if f, err := os.Open(path); err == nil { // #nosec G122 -- only to find out whether it can be read
			_ = f.Close()
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// enqueue makes a job for each file and notes the sum that it must find.
func (d *demo) enqueue(ctx context.Context, files []string) error {
	jobs := make([]commands.Enqueue, len(files))
	for i, path := range files {
		jobs[i] = commands.Enqueue{Queue: queue, Payload: []byte(path),
			Tags: map[string]string{"file": shortened(filepath.Base(path))}}
	}
	enqueued, err := d.service.Enqueue(ctx, d.Actor, jobs...)
	if err != nil {
		return err
	}
	for i, j := range enqueued {
		sum, err := sumOf(files[i])
		if err != nil {
			return err
		}
		d.ids, d.sums[j.ID] = append(d.ids, j.ID), sum
	}
	return nil
}

func shortened(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), commands.MaxTag)], "")
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checkSums compares the result of each job with the sum of its file.
func (d *demo) checkSums(ctx context.Context) error {
	return d.service.Store.Read(ctx, func(tx *ledger.Tx) error {
		for _, id := range d.ids {
			j, _, err := projection.Get(ctx, tx, id)
			if err == nil {
				err = projection.LoadBodies(ctx, tx, &j)
			}
			if err != nil {
				return err
			}
			if got, _, _ := strings.Cut(string(j.Result), " "); got != d.sums[id] {
				return failf(ErrWrongSum, "job %s found %q for %s, want %s", id, got, j.Payload, d.sums[id])
			}
		}
		return nil
	})
}
