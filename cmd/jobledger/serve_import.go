package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/files"
	"jobledger/cmd/jobledger/internal/words"
)

// maxImported is the most bytes of events that serve unpacks from an archive.
const maxImported = 8 << 30

// importAside makes a ledger of file, a .zip that the page of an incident gave or a history as 'export'
// writes it, in a temporary folder, and has p work on it. remove removes the folder.
func (p *program) importAside(ctx context.Context, file string) (remove func(), err error) {
	folder, err := os.MkdirTemp("", "jobledger-serve-")
	if err != nil {
		return nil, fmt.Errorf("serve --import: %w", err)
	}
	away := func() { _ = os.RemoveAll(folder) }
	defer func() {
		if err != nil {
			away()
		}
	}()
	events := file
	if strings.EqualFold(path.Ext(file), ".zip") {
		events = filepath.Join(folder, "events.jsonl")
		if err := unpackEvents(file, events); err != nil {
			return nil, err
		}
	}
	content, err := os.Open(events)
	if err != nil {
		return nil, cli.Exitf(cli.ExitUsage, "serve --import: %w", err)
	}
	defer content.Close()
	info, err := content.Stat()
	if err != nil {
		return nil, fmt.Errorf("serve --import: %w", err)
	}
	p.DB = filepath.Join(folder, strings.TrimSuffix(filepath.Base(file), path.Ext(file))+".db")
	loaded, err := files.Import(ctx, io.NewSectionReader(content, 0, info.Size()),
		files.ImportOptions{DSN: p.DB, From: filepath.Base(file), Actor: p.Actor})
	switch {
	case errors.Is(err, files.ErrEmpty):
		return nil, cli.Exitf(cli.ExitNothing, "serve --import: %w", err)
	case errors.Is(err, files.ErrBadHistory):
		return nil, cli.WithHint(cli.Usagef("serve --import: %w", err),
			"an incident needs all events up to its end, not those of its window only")
	case err != nil:
		return nil, err
	}
	p.Message("%s of %s, read only, in a folder that is removed at the end",
		words.Count(loaded.Events, "event"), words.Count(loaded.Jobs, "job"))
	return away, nil
}

// unpackEvents writes the events of an archive to target.
func unpackEvents(archive, target string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return cli.Exitf(cli.ExitUsage, "serve --import: %s: %w", archive, err)
	}
	defer z.Close()
	for _, f := range z.File {
		if path.Base(f.Name) != "events.jsonl" {
			continue
		}
		from, err := f.Open()
		if err != nil {
			return cli.Exitf(cli.ExitUsage, "serve --import: %s: %w", archive, err)
		}
		defer from.Close()
		to, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("serve --import: %w", err)
		}
		n, err := io.Copy(to, io.LimitReader(from, maxImported+1))
		if closeErr := to.Close(); err == nil {
			err = closeErr
		}
		switch {
		case err != nil:
			return cli.Exitf(cli.ExitUsage, "serve --import: %s: %w", archive, err)
		case n > maxImported:
			return cli.Usagef("serve --import: the events of %s are more than 8 GiB", archive)
		}
		return nil
	}
	return cli.WithHint(cli.Usagef("serve --import: there is no events.jsonl in %s", archive),
		"the page Incident has such a file, and 'jobledger incident' writes the same as a folder")
}
