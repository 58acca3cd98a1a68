package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/projection"
)

// ImportOptions say where a history goes.
type ImportOptions struct {
	DSN   string // of the ledger, which must be missing or empty
	From  string // the name of the history, for the event imported
	Actor string // for the same event

	// Progress, if not nil, is called now and then with the number of events done. A lower number than before
	// means that the import has started again.
	Progress func(events int64)
}

// Import makes a ledger of an exported history. Each line, each transition and each digest is checked. All of
// it is written, or nothing: an empty ledger is filled in one transaction, and a new file appears when it is
// complete.
//
// Errors: ErrEmpty, ErrBadHistory, ErrLeftover; load.ErrNotEmpty.
func Import(ctx context.Context, content *io.SectionReader, o ImportOptions) (load.Loaded, error) {
	if content.Size() == 0 {
		return load.Loaded{}, refuse(ErrEmpty, "there is no event in %s", o.From)
	}
	loaded, err := o.load(ctx, content)
	if line, ok := errors.AsType[*load.LineError](err); ok {
		return load.Loaded{}, refuse(ErrBadHistory, "%s", plain(line))
	}
	if errors.Is(err, projection.ErrIllegal) {
		return load.Loaded{}, refuse(ErrBadHistory, "%s", plain(err))
	}
	return loaded, err
}

// load writes into the ledger that there is, or into a staging.
func (o ImportOptions) load(ctx context.Context, content *io.SectionReader) (load.Loaded, error) {
	path, options := splitDSN(o.DSN)
	_, statErr := os.Lstat(path)
	store, err := ledger.OpenExisting(ctx, o.DSN)
	if errors.Is(err, ledger.ErrNoLedger) &&
		(ledger.IsServerAddress(o.DSN) || !errors.Is(statErr, fs.ErrNotExist)) {
		store, err = ledger.Open(ctx, o.DSN) // a database without a ledger, or an empty file
	}
	if err == nil {
		defer store.Close()
		return load.Import(ctx, service(store), o.Actor, o.From, Lines(content), o.Progress)
	}
	if !errors.Is(err, ledger.ErrNoLedger) {
		return load.Loaded{}, err
	}
	return newLoaded(ctx, path, options, func(s *staging) (load.Loaded, error) {
		return load.Import(ctx, s.Service, o.Actor, o.From, Lines(content), o.Progress)
	})
}

// newLoaded makes a ledger at path with what load writes into it, in steps or, if that is not possible, at
// once.
func newLoaded(ctx context.Context, path, options string, fill func(*staging) (load.Loaded, error)) (
	loaded load.Loaded, err error) {
	for _, inSteps := range []bool{true, false} {
		s, err := newLedger(ctx, path, options)
		if err != nil {
			return loaded, err
		}
		defer s.discard()
		s.Staging = inSteps
		loaded, err = fill(s)
		if err == nil {
			err = s.publish()
		}
		if !inSteps || !errors.Is(err, load.ErrLoadAtOnce) {
			return loaded, err
		}
		s.discard()
	}
	return loaded, load.ErrLoadAtOnce
}

// splitDSN splits the DSN of a file into its path and its options. The address of a server is returned as the
// path.
func splitDSN(dsn string) (path, options string) {
	path, isURL := strings.CutPrefix(dsn, "sqlite:")
	if isURL {
		path, options, _ = strings.Cut(path, "?")
	}
	return path, options
}
