package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"jobledger/cmd/jobledger/internal/logs"
)

// packageDB is the ledger of the package's units. Tests set it.
var packageDB = "/var/lib/jobledger/jobs.db"

// findDB returns the ledger to use without --db: the first that exists of this folder's, the user's, and the
// package's if the user may read it; if none exists, this folder's, which is then made.
func findDB() string {
	if _, err := os.Stat(DefaultDB); !errors.Is(err, fs.ErrNotExist) {
		return DefaultDB
	}
	if state, err := logs.StateFolder(); err == nil {
		if own := filepath.Join(state, "jobs.db"); isFile(own) {
			return own
		}
	}
	if isFile(packageDB) && mayOpen(packageDB) {
		return packageDB
	}
	return DefaultDB
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// mayOpen reports whether the file may be read and written.
func mayOpen(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = f.Close()
	}
	return err == nil
}

// sayPlace names, once and on a terminal, a ledger that was found elsewhere than in this folder.
func (p *Program) sayPlace() {
	if p.found && p.StderrTerminal {
		p.Message("the ledger is %s", p.DB)
	}
	p.found = false
}

// UseOwnPlace makes the ledger that is meant be the user's own, and its folder, where none is named and
// none is there.
func (p *Program) UseOwnPlace() error {
	if p.DB != DefaultDB || p.dbGiven || os.Getenv("JOBLEDGER_DB") != "" {
		return nil
	}
	folder, err := logs.StateFolder()
	if _, missing := os.Stat(p.DB); err != nil || !errors.Is(missing, fs.ErrNotExist) {
		return nil // without a home it is made in this folder
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	p.DB = filepath.Join(folder, "jobs.db")
	return nil
}
