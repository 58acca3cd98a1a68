package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/projection"
)

// ArchiveEnv is the environment variable that says where the archive is.
const ArchiveEnv = "JOBLEDGER_ARCHIVE"

// ArchiveFolder returns the folder of the archive of a ledger: the one that was given, or else the one next
// to the ledger's file; "" for a ledger that has none.
func ArchiveFolder(given string, store *ledger.Store) string {
	switch {
	case given != "":
		return given
	case ledger.IsServerAddress(store.DSN()):
		return ""
	}
	return store.Path() + archive.Suffix
}

// ArchiveCacheEnv is the environment variable that says what the flag --archive-cache does.
const ArchiveCacheEnv = "JOBLEDGER_ARCHIVE_CACHE"

// ArchiveCacheFlag is --archive-cache: where the copy is kept that answers about the archive.
func ArchiveCacheFlag() Flag {
	return &StringFlag{Name: "archive-cache", EnvVars: []string{ArchiveCacheEnv}, Usage: "keep what is read " +
		"of archives in the folder `DIR`, for later questions; off: in a temporary file (default: jobledger in " +
		"your folder for caches)"}
}

// ArchiveCache returns the folder that --archive-cache names; "": a temporary one.
func ArchiveCache(given string) (string, error) {
	if given == "off" {
		return "", nil
	}
	if given == "" {
		caches, err := os.UserCacheDir()
		folder := filepath.Join(caches, ProgramName)
		if err != nil || os.MkdirAll(folder, 0o700) != nil { // a service may have none
			return "", nil
		}
		return folder, nil
	}
	info, err := os.Stat(given)
	switch {
	case err == nil && !info.IsDir():
		return "", Usagef("--archive-cache: %s is not a folder", given)
	case err == nil && runtime.GOOS != "windows" && info.Mode()&0o022 != 0:
		return "", WithHint(Usagef("--archive-cache: others may write in %s", given),
			"'chmod go-w %s' ends that", given)
	}
	return given, nil
}

// withArchive returns a service on the copy of p.Archived for service, which is closed with it; service
// itself if nothing has left the ledger.
func (p *Program) withArchive(ctx context.Context, service *commands.Service) (*commands.Service, error) {
	reader := *p.Archived
	reader.Store, reader.Dir = service.Store, ArchiveFolder(cmp.Or(reader.Dir, os.Getenv(ArchiveEnv)),
		service.Store)
	whole := service.Store
	err := service.Store.Read(ctx, func(tx *ledger.Tx) error { return projection.AfterHorizon(ctx, tx, 0) })
	switch {
	case errors.Is(err, projection.ErrArchived) && reader.Dir == "":
		err = WithHint(Exitf(ExitNothing, "%w", err), "--archive DIR or %s says where the archive is", ArchiveEnv)
	case errors.Is(err, projection.ErrArchived):
		whole, err = reader.Open(ctx)
	}
	switch {
	case err != nil:
		_ = service.Store.Close() // it was only read
		return nil, readerError(err)
	case whole == service.Store:
		return service, nil
	}
	closed := whole.Closed
	whole.Closed = func() {
		closed()
		_ = service.Store.Close()
	}
	return &commands.Service{Store: whole}, nil
}

// readerError adds the exit code and a hint to an error about the folder of an archive.Reader.
func readerError(err error) error {
	if failed, ok := errors.AsType[*archive.ReaderError](err); ok {
		return WithHint(Exitf(ExitUnexpected, "%s", failed.Error()), "--archive-cache DIR names another folder, "+
			"and --archive-cache off a temporary one; --live asks only the ledger")
	}
	return err
}
