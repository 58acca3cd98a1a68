package ledger

import (
	"errors"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// straight is a query on a connection of its own, straight on SQLite's C interface. Every value that comes by way of
// the driver takes two locks, an allocation and a conversion, which together cost three times what SQLite needs for it;
// a check of the whole ledger reads millions. It is for one goroutine, only reads, and is never all there is: where
// anything goes wrong with it, whoever uses it goes by way of the driver, which says what it is.
type straight struct {
	tls      *libc.TLS
	db, stmt uintptr
}

var errStraight = errors.New("ledger: not this way")

// openStraight runs query with two arguments on the file at path, in a snapshot that begins now. Close it.
func openStraight(path, query string, first, second int64) (s *straight, err error) {
	s = &straight{tls: libc.NewTLS()}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	out := libc.Xmalloc(s.tls, 8) // where SQLite puts an address
	if out == 0 {
		return s, errStraight
	}
	defer libc.Xfree(s.tls, out)
	err = s.with(path, func(name uintptr) int32 {
		code := sqlite3.Xsqlite3_open_v2(s.tls, name, out, sqlite3.SQLITE_OPEN_READONLY|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
		s.db = addressAt(out)
		return code
	})
	if err == nil {
		sqlite3.Xsqlite3_busy_timeout(s.tls, s.db, 5000)
		err = s.with(query, func(text uintptr) int32 {
			code := sqlite3.Xsqlite3_prepare_v2(s.tls, s.db, text, -1, out, 0)
			s.stmt = addressAt(out)
			return code
		})
	}
	if err == nil && sqlite3.Xsqlite3_bind_int64(s.tls, s.stmt, 1, first)|sqlite3.Xsqlite3_bind_int64(s.tls, s.stmt, 2, second) != sqlite3.SQLITE_OK {
		err = errStraight
	}
	return s, err
}

// with calls fn with a C string that lives as long.
func (s *straight) with(text string, fn func(address uintptr) (code int32)) error {
	address, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(s.tls, address)
	if fn(address) != sqlite3.SQLITE_OK {
		return errStraight
	}
	return nil
}

func addressAt(p uintptr) uintptr { return libc.VaUintptr(&p) }

// next goes to the next row; ok is false at the end.
func (s *straight) next() (ok bool, err error) {
	switch sqlite3.Xsqlite3_step(s.tls, s.stmt) {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	}
	return false, errStraight
}

// kind returns the type of a column: SQLITE_INTEGER, SQLITE_TEXT, SQLITE_BLOB, SQLITE_NULL or SQLITE_FLOAT.
func (s *straight) kind(column int32) int32 {
	return sqlite3.Xsqlite3_column_type(s.tls, s.stmt, column)
}

func (s *straight) integer(column int32) int64 {
	return sqlite3.Xsqlite3_column_int64(s.tls, s.stmt, column)
}

// bytes returns a text or a blob, good until the next row.
func (s *straight) bytes(column int32) []byte {
	p := sqlite3.Xsqlite3_column_blob(s.tls, s.stmt, column)
	n := sqlite3.Xsqlite3_column_bytes(s.tls, s.stmt, column)
	if p == 0 || n == 0 {
		return []byte{}
	}
	return libc.GoBytes(p, int(n))
}

func (s *straight) close() {
	sqlite3.Xsqlite3_finalize(s.tls, s.stmt) // of none does nothing, as with the next
	sqlite3.Xsqlite3_close_v2(s.tls, s.db)
	s.tls.Close()
}
