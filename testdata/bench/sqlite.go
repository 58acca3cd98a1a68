package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// dsn returns the address of f in WAL mode at its durability, with further pragmas such as "busy_timeout(5000)".
func (f File) dsn(pragmas ...string) string {
	v := url.Values{"_pragma": append(pragmas, "journal_mode(WAL)", "synchronous("+f.Sync+")")}
	return (&url.URL{Scheme: "file", Path: f.Path, RawQuery: v.Encode()}).String()
}

// open returns a pool on f of at most max connections (0: no limit), none of which is dropped while idle.
func (f File) open(max int, pragmas ...string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", f.dsn(pragmas...))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(max)
	db.SetMaxIdleConns(max)
	if max == 0 {
		db.SetMaxIdleConns(64)
	}
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
