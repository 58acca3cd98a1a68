package incident

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// FolderOptions say what [WriteFolder] writes, and where.
type FolderOptions struct {
	Path       string    // the folder to make; missing, or an empty folder
	Program    string    // the program and its version, for the manifest
	Actor      string    // who asks, for the manifest
	Now        time.Time // when it is asked
	Bodies     bool      // with payloads, results and salts
	WindowOnly bool      // events.jsonl without the events before the window

	Progress func(events int)              // is called as events are written; nil: not
	Withhold func(event.Event) event.Event // that of the lines of events.jsonl
}

// Manifest describes the files of a folder. It is written there as manifest.json.
type Manifest struct {
	Format     int            `json:"format"`
	Program    string         `json:"program"`
	CreatedAt  string         `json:"created_at"`
	CreatedBy  string         `json:"created_by"`
	From       string         `json:"from"`
	To         string         `json:"to"`
	FirstEvent int64          `json:"first_event"` // of the incident
	LastEvent  int64          `json:"last_event"`
	Bodies     bool           `json:"bodies"`
	WindowOnly bool           `json:"window_only,omitempty"` // events.jsonl begins with FirstEvent, not 1
	Files      []ManifestFile `json:"files"`
}

// ManifestFile is one file of a folder.
type ManifestFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// TakenError says that there is something at the path of the folder. It was not touched.
type TakenError struct {
	Path     string
	NotEmpty bool  // it is a folder with files
	Err      error // why it could not be replaced; nil: not tried
}

// Error implements error.
func (e *TakenError) Error() string {
	switch {
	case e.NotEmpty:
		return e.Path + " is not empty; it was not touched"
	case e.Err != nil:
		return fmt.Sprintf("%s: %v; it was not touched", e.Path, e.Err)
	}
	return e.Path + " is there and is not a folder; it was not touched"
}

// Unwrap returns Err.
func (e *TakenError) Unwrap() error { return e.Err }

// CheckFree returns a [TakenError] if there is anything but an empty folder at path.
func CheckFree(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return &TakenError{Path: path}
	case err != nil:
		return err
	case len(entries) > 0:
		return &TakenError{Path: path, NotEmpty: true}
	}
	return nil
}

// WriteFolder makes a folder with everything about w. It appears under its name when it is whole, and only
// its owner may read it. After an error there is no folder; it is a [TakenError] if the path is taken by
// then.
func WriteFolder(ctx context.Context, store *ledger.Store, w export.Window, o FolderOptions) (*Manifest,
	error) {
	// MkdirTemp makes a folder that only its owner may read.
	staging, err := os.MkdirTemp(filepath.Dir(o.Path), "."+filepath.Base(o.Path)+".*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(staging) // unless it has its name by then
	f := folder{path: staging, Manifest: &Manifest{
		Format: 1, Program: o.Program, CreatedAt: words.JSONTime(o.Now), CreatedBy: o.Actor,
		From: words.JSONTime(w.From), To: words.JSONTime(w.To), FirstEvent: w.After + 1, LastEvent: w.Until,
		Bodies: o.Bodies, WindowOnly: o.WindowOnly,
	}}
	if err := f.write(ctx, store, w, o); err != nil {
		return nil, err
	}
	return f.Manifest, moveFolder(staging, o.Path)
}

// folder is a folder that is being filled.
type folder struct {
	*Manifest
	path string
}

// write writes the files and their manifest.
func (f folder) write(ctx context.Context, store *ledger.Store, w export.Window, o FolderOptions) error {
	report, err := Investigate(ctx, store, w, o.Now)
	if err != nil {
		return err
	}
	report.WindowOnly = o.WindowOnly
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"report.md", report.WriteMarkdown},
		{"depth.svg", report.Depth.WriteSVG},
		{"events.jsonl", func(out io.Writer) error {
			options := export.LinesOptions{Bodies: o.Bodies, Progress: o.Progress, Withhold: o.Withhold}
			events := export.Window{Until: w.Until} // from the first event on, so that it can be imported
			if o.WindowOnly {
				events = w
			}
			_, err := export.Lines(ctx, store, events, options, out)
			return err
		}},
		{"attempts.csv", func(out io.Writer) error { return export.CSV(ctx, store, w, out) }},
		{"trace.json", func(out io.Writer) error { return export.Trace(ctx, store, w, out) }},
	} {
		if err := f.add(file.name, file.write); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(f.Manifest, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.path, "manifest.json"), append(text, '\n'), 0o600)
}

// add makes a file of what write writes, and notes its size and digest.
func (f folder) add(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(filepath.Join(f.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(file, hash), 64<<10)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	f.Files = append(f.Files, ManifestFile{name, size, hex.EncodeToString(hash.Sum(nil))})
	return file.Close()
}

// moveFolder renames folder to target. It replaces an empty folder there and nothing else.
func moveFolder(folder, target string) error {
	// os.Remove would remove a file
	if err := syscall.Rmdir(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return &TakenError{Path: target, Err: err}
	}
	if err := os.Rename(folder, target); err != nil {
		return err
	}
	return ledger.SyncFolder(filepath.Dir(target))
}
