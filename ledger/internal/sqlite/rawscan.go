package sqlite

import (
	"errors"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/ledger/internal/engine"
)

// rawScan is a query on a connection of its own, on SQLite's C interface. A value that comes through the
// driver takes two locks, an allocation and a conversion, which together cost three times what SQLite needs
// for it, and verify reads millions of values.
//
// It only reads, and one goroutine uses it. It reports no reasons: after an error the caller runs the same
// query through the driver, which does.
type rawScan struct {
	tls      *libc.TLS
	db, stmt uintptr
}

var errRawScan = errors.New("ledger: the raw scan failed")

// RawScan implements engine.Engine. The snapshot begins now.
func (f *Engine) RawScan(query string, first, second int64) (_ engine.RawRows, err error) {
	s := &rawScan{tls: libc.NewTLS()}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	out := libc.Xmalloc(s.tls, 8) // where SQLite writes an address
	if out == 0 {
		return nil, errRawScan
	}
	defer libc.Xfree(s.tls, out)
	err = s.withCString(f.path, func(name uintptr) int32 {
		const flags = sqlite3.SQLITE_OPEN_READONLY | sqlite3.SQLITE_OPEN_NOMUTEX
		code := sqlite3.Xsqlite3_open_v2(s.tls, name, out, flags, 0)
		s.db = addressAt(out)
		return code
	})
	if err == nil {
		sqlite3.Xsqlite3_busy_timeout(s.tls, s.db, 5000)
		err = s.withCString(query, func(text uintptr) int32 {
			code := sqlite3.Xsqlite3_prepare_v2(s.tls, s.db, text, -1, out, 0)
			s.stmt = addressAt(out)
			return code
		})
	}
	if err == nil {
		code := sqlite3.Xsqlite3_bind_int64(s.tls, s.stmt, 1, first)
		code |= sqlite3.Xsqlite3_bind_int64(s.tls, s.stmt, 2, second)
		if code != sqlite3.SQLITE_OK {
			err = errRawScan
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// withCString calls fn with the address of a C string that is valid during the call.
func (s *rawScan) withCString(text string, fn func(address uintptr) (code int32)) error {
	address, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(s.tls, address)
	if fn(address) != sqlite3.SQLITE_OK {
		return errRawScan
	}
	return nil
}

func addressAt(p uintptr) uintptr { return libc.VaUintptr(&p) }

// Next implements engine.RawRows.
func (s *rawScan) Next() (ok bool, err error) {
	switch sqlite3.Xsqlite3_step(s.tls, s.stmt) {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	}
	return false, errRawScan
}

// Type implements engine.Row.
func (s *rawScan) Type(column int) engine.ValueType {
	switch sqlite3.Xsqlite3_column_type(s.tls, s.stmt, int32(column)) {
	case sqlite3.SQLITE_NULL:
		return engine.NullValue
	case sqlite3.SQLITE_INTEGER:
		return engine.IntValue
	case sqlite3.SQLITE_TEXT:
		return engine.TextValue
	case sqlite3.SQLITE_BLOB:
		return engine.BytesValue
	}
	return engine.OtherValue
}

// Int implements engine.Row.
func (s *rawScan) Int(column int) int64 {
	return sqlite3.Xsqlite3_column_int64(s.tls, s.stmt, int32(column))
}

// Text implements engine.Row.
func (s *rawScan) Text(column int) string { return string(s.view(column)) }

// Bytes implements engine.Row.
func (s *rawScan) Bytes(column int) []byte { return append([]byte{}, s.view(column)...) }

// view returns a text or a blob in memory of SQLite, which is valid until the next row.
func (s *rawScan) view(column int) []byte {
	p := sqlite3.Xsqlite3_column_blob(s.tls, s.stmt, int32(column))
	n := sqlite3.Xsqlite3_column_bytes(s.tls, s.stmt, int32(column))
	if p == 0 || n == 0 {
		return nil
	}
	return libc.GoBytes(p, int(n))
}

// Close implements engine.RawRows.
func (s *rawScan) Close() {
	sqlite3.Xsqlite3_finalize(s.tls, s.stmt) // accepts a null pointer, as does the next
	sqlite3.Xsqlite3_close_v2(s.tls, s.db)
	s.tls.Close()
}
