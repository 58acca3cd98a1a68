package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/ledger/process"
)

// Open opens the ledger of --db, which must exist, or its copy that includes what is archived. The caller
// closes its Store.
func (p *Program) Open(ctx context.Context) (service *commands.Service, err error) {
	if p.Opened != nil {
		service = &commands.Service{Store: p.Opened.Share()}
	} else if service, err = p.open(ctx, false); err != nil {
		return nil, WithFolderHint(p.DB, err)
	}
	if p.Archived != nil {
		return p.withArchive(ctx, service)
	}
	return service, nil
}

// OpenOrCreate opens the ledger of --db and creates it if it does not exist, which it says on stderr: a
// wrong folder makes another ledger. It is for enqueue and work; init says what it made on stdout.
func (p *Program) OpenOrCreate(ctx context.Context) (*commands.Service, error) {
	service, err := p.Create(ctx)
	if err == nil && service.Store.Created() {
		p.Message("made the ledger %s", service.Store.Path())
	}
	return service, err
}

// Create is OpenOrCreate that says nothing.
func (p *Program) Create(ctx context.Context) (*commands.Service, error) {
	service, err := p.open(ctx, true)
	return service, WithFolderHint(p.DB, err)
}

func (p *Program) open(ctx context.Context, create bool) (*commands.Service, error) {
	if !p.Stays && ledger.IsServerAddress(p.DB) {
		store, err := ledger.OpenOnce(ctx, p.DB)
		if !create || !errors.Is(err, ledger.ErrNoLedger) {
			return p.NewService(store, err)
		}
	}
	if create {
		return p.NewService(ledger.Open(ctx, p.DB))
	}
	return p.NewService(ledger.OpenExisting(ctx, p.DB))
}

// WithFolderHint adds a hint to err if the folder of dsn does not exist or is not a folder.
func WithFolderHint(dsn string, err error) error {
	if err == nil || errors.Is(err, ledger.ErrAddress) || ledger.IsServerAddress(dsn) {
		return err
	}
	path, _ := SplitDSN(dsn)
	folder := filepath.Dir(path)
	switch info, statErr := os.Stat(folder); {
	case errors.Is(statErr, fs.ErrNotExist):
		return WithHint(Exitf(ExitUsage, "%w", err),
			"there is no folder %s: make it first, or see whether that is the place you mean", folder)
	case statErr == nil && !info.IsDir():
		return WithHint(Exitf(ExitUsage, "%w", err), "%s is not a folder", folder)
	}
	return err
}

// minClockSkew is the least difference between a server's clock and this machine's that is corrected.
const minClockSkew = 500 * time.Millisecond

// NewService returns a service on store, and corrects p's clock by that of the store's server. A non-nil err
// is returned.
func (p *Program) NewService(store *ledger.Store, err error) (*commands.Service, error) {
	if err != nil {
		return nil, err
	}
	if note := store.ReadNote(); note != "" {
		p.Message("%s", note)
	}
	p.sayPlace()
	service := &commands.Service{Store: store}
	store.Whole = p.Live
	if dir := ArchiveFolder(os.Getenv(ArchiveEnv), store); dir != "" {
		service.Archived = archive.Ends(store, dir)
		if store.Archived == nil {
			store.Archived = archive.Leaves(store, dir)
		}
	}
	if failpoint.Shifted() {
		store.Now = p.Now
	} else {
		p.useServerClock(store.ClockSkew())
	}
	return service, nil
}

// useServerClock sets p's clock ahead of this machine's, because the server's clock decides what is due or
// overdue. Times that the user gave relative to now are read again.
func (p *Program) useServerClock(ahead time.Duration) {
	if ahead.Abs() < minClockSkew && p.ClockSkew == 0 {
		return
	}
	before := p.ClockSkew
	here := p.Now
	p.ClockSkew = ahead
	p.Now = func() time.Time { return here().Add(ahead - before) }
	if p.ReparseTimes != nil {
		p.ReparseTimes()
	}
}

// Read opens the ledger of --db, runs fn on one snapshot of it, and closes it.
func (p *Program) Read(ctx context.Context, fn func(*ledger.Tx) error) error {
	service, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	return service.Store.Read(ctx, fn)
}

// LogFolder returns the folder for the output of a worker's commands. If there is none, it prints a message
// and returns "".
func (p *Program) LogFolder(service *commands.Service) string {
	folder, err := logs.Folder(service.Store.Path())
	if err != nil {
		p.Message("what commands write is not kept for 'jobledger logs': %v", err)
	}
	return folder
}

// ThisWorker returns this process as a worker called name, by default host-pid.
func ThisWorker(name, version string) event.Worker {
	host := Hostname("unknown")
	name = cmp.Or(name, fmt.Sprintf("%s-%d", host, os.Getpid()))
	return event.Worker{Name: name, Boot: process.NewBoot(), Host: host, PID: os.Getpid(), Version: version}
}

// ParentWorker is ThisWorker for the process that started this one, such as a shell. If the system says
// when that process began, Boot is the same each time.
func ParentWorker(name, version string) event.Worker {
	w, pid := ThisWorker(name, version), os.Getppid()
	if name == "" {
		w.Name = fmt.Sprintf("%s-%d", w.Host, pid)
	}
	w.PID = pid
	if machine, began := process.Machine(), process.Began(pid); machine != "" && began != "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s %s", w.Name, w.Host, pid, machine,
			began))
		sum[0] &= 0x7f // a ULID of today begins with 0, this one with 0 to 3
		w.Boot = ulid.ULID(sum[:16]).String()
	}
	return w
}

// AbsoluteDSN returns dsn with an absolute path, so that it names the same ledger from another folder.
func AbsoluteDSN(dsn string) string {
	if ledger.IsServerAddress(dsn) {
		return dsn
	}
	path, isURL := strings.CutPrefix(dsn, "sqlite:")
	absolute, err := filepath.Abs(path)
	switch {
	case err != nil:
		return dsn
	case isURL:
		return "sqlite:" + absolute
	}
	return absolute
}
