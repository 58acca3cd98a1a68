package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// open opens one connection to f in WAL mode at its durability, with further pragmas such as
// "busy_timeout(5000)".
func (f File) open(pragmas ...string) (*sql.DB, error) {
	v := url.Values{"_pragma": append(pragmas, "journal_mode(WAL)", "synchronous("+f.Sync+")")}
	return openOne("sqlite", (&url.URL{Scheme: "file", Path: f.Path, RawQuery: v.Encode()}).String())
}

// openOne returns a pool of one connection, which is not dropped while idle.
func openOne(driver, address string) (*sql.DB, error) {
	db, err := sql.Open(driver, address)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// isBusy tells whether err only says that somebody else is writing.
func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// sqliteVersion returns the version of the library that every engine here uses.
func sqliteVersion(ctx context.Context) (version string, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version)
	return version, err
}
