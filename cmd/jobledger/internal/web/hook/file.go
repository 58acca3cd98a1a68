package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/ledger/ownerfile"
)

// PathOf returns where the webhooks of the ledger in the file db are.
func PathOf(db string) string { return db + ".webhooks" }

// staleLock is when a change of the file that has not ended was cut off.
const staleLock = 10 * time.Second

// File is what the file of webhooks holds. It has their secrets, which sign each request, so only its owner
// can read it.
type File struct {
	Source    string // the ledger, as bodies name it
	Endpoints []Endpoint
}

// NoEndpointError means that there is no webhook of this name.
type NoEndpointError struct{ Name string }

// Error says so.
func (e *NoEndpointError) Error() string { return fmt.Sprintf("there is no webhook %q", e.Name) }

// BusyError means that another command changes the file at this moment.
type BusyError struct{ Path string }

// Error says so.
func (e *BusyError) Error() string {
	return "another command changes the webhooks; its file is " + e.Path
}

// Find returns the webhook of this name; a [NoEndpointError] if there is none.
func (f *File) Find(name string) (*Endpoint, error) {
	for i := range f.Endpoints {
		if f.Endpoints[i].Name == name {
			return &f.Endpoints[i], nil
		}
	}
	return nil, &NoEndpointError{name}
}

// Add adds e. If the name exists already, the error is a [commands.ConflictError].
func (f *File) Add(e Endpoint) error {
	if err := e.Check(); err != nil {
		return err
	}
	if _, err := f.Find(e.Name); err == nil {
		return fmt.Errorf("%w: there is a webhook %q already; remove it first", commands.ErrConflict, e.Name)
	}
	f.Endpoints = append(f.Endpoints, e)
	return nil
}

// Remove removes the webhook of this name, with its secrets.
func (f *File) Remove(name string) error {
	if _, err := f.Find(name); err != nil {
		return err
	}
	f.Endpoints = slices.DeleteFunc(f.Endpoints, func(e Endpoint) bool { return e.Name == name })
	return nil
}

// fileJSON is the file.
type fileJSON struct {
	Source    string         `json:"source"`
	Endpoints []endpointJSON `json:"webhooks"`
}

type endpointJSON struct {
	Name     string         `json:"name"`
	URL      string         `json:"url"`
	Queues   []string       `json:"queues"`
	Kinds    []string       `json:"kinds"`
	Allow    []netip.Prefix `json:"allow"`
	Parallel int            `json:"parallel"`
	Timeout  float64        `json:"timeout"` // seconds
	Created  time.Time      `json:"created"`
	After    Place          `json:"after"`
	Secrets  []secretJSON   `json:"secrets"`
}

type secretJSON struct {
	Secret string     `json:"secret"`
	Until  *time.Time `json:"until,omitempty"`
}

// Read reads the file at path; none is an empty one.
func Read(path string) (f File, err error) {
	text, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{Source: "urn:jobledger:" + ulid.Make().String()}, nil
	}
	if err != nil {
		return f, err
	}
	var parsed fileJSON
	if err := json.Unmarshal(text, &parsed); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	f.Source = parsed.Source
	for _, j := range parsed.Endpoints {
		e := Endpoint{j.Name, j.URL, j.Queues, j.Kinds, j.Allow, j.Parallel,
			time.Duration(j.Timeout * float64(time.Second)), j.Created, j.After, nil}
		for _, s := range j.Secrets {
			secret, err := ParseSecret(s.Secret)
			if err != nil {
				return f, fmt.Errorf("%s: %s: %w", path, j.Name, err)
			}
			if s.Until != nil {
				secret.Until = *s.Until
			}
			e.Secrets = append(e.Secrets, secret)
		}
		if err := e.Check(); err != nil {
			return f, fmt.Errorf("%s: %s: %w", path, j.Name, err)
		}
		f.Endpoints = append(f.Endpoints, e)
	}
	return f, nil
}

// readPrivate reads a file that only its owner may read.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := ownerfile.Check(path, info); err != nil {
		return nil, err
	}
	return os.ReadFile(path) // #nosec G304 -- next to the ledger
}

// Change reads the file at path, has fn change it, and puts the result in its place at once, for one process
// at a time: a reader sees the old one or the new one. A [BusyError] says that another process is changing
// the file.
func Change(path string, fn func(*File) error) (err error) {
	next := path + ".new"
	if info, err := os.Stat(next); err == nil && time.Since(info.ModTime()) > staleLock {
		_ = os.Remove(next) // else the next line says so
	}
	out, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- next to the ledger
	if errors.Is(err, fs.ErrExist) {
		return &BusyError{next}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(next) // it is not the file
		}
	}()
	f, err := Read(path)
	if err == nil {
		err = fn(&f)
	}
	if err == nil {
		err = f.write(out)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(next, path)
}

func (f File) write(out *os.File) error {
	file := fileJSON{Source: f.Source, Endpoints: []endpointJSON{}}
	for _, e := range f.Endpoints {
		j := endpointJSON{e.Name, e.URL, e.Queues, e.Kinds, e.Allow, e.Parallel, e.Timeout.Seconds(), e.Created,
			e.After, nil}
		for _, s := range e.Secrets {
			line := secretJSON{Secret: s.Text()}
			if !s.Until.IsZero() {
				line.Until = &s.Until
			}
			j.Secrets = append(j.Secrets, line)
		}
		file.Endpoints = append(file.Endpoints, j)
	}
	text, err := json.MarshalIndent(file, "", " ")
	if err != nil {
		return err
	}
	if _, err := out.Write(append(text, '\n')); err != nil {
		return err
	}
	return out.Sync()
}
