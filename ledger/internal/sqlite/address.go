package sqlite

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"jobledger/ledger/internal/engine"
)

// options are what an address says besides the path.
type options struct {
	sync    string
	network bool
	names   bool
}

// parseDSN returns the absolute path and the options of an address, which is a path or "sqlite:PATH?OPTIONS".
func parseDSN(dsn string) (path string, o options, err error) {
	o.sync = "full"
	rest, isURL := strings.CutPrefix(dsn, "sqlite:")
	switch {
	case engine.IsServerAddress(dsn):
		return "", o, fmt.Errorf("%w: this is for a ledger in a file, and %s… is one in PostgreSQL, "+
			"which has its own tools", engine.ErrAddress, strings.SplitAfter(dsn, "://")[0])
	case engine.CheckFileAddress(dsn) != nil:
		return "", o, engine.CheckFileAddress(dsn)
	case isURL:
		var query string
		rest, query, _ = strings.Cut(rest, "?")
		values, err := url.ParseQuery(query)
		if err != nil {
			return "", o, fmt.Errorf("%w: the options of an address are written as ?sync=normal&network=allow",
				engine.ErrAddress)
		}
		for name, value := range values {
			switch v := strings.Join(value, ","); {
			case name == "sync" && (v == "full" || v == "normal"):
				o.sync = v
			case name == "network" && v == "allow":
				o.network = true
			case name == "names" && v == "allow":
				o.names = true
			default:
				if name != "sync" && name != "network" && name != "names" { // which may be a password
					v = "…"
				}
				return "", o, fmt.Errorf("%w: option %.40s=%.40s: the options are sync=full, sync=normal, "+
					"network=allow, names=allow", engine.ErrAddress, name, v)
			}
		}
	}
	if rest == "" || rest == ":memory:" || strings.ContainsRune(rest, 0) {
		return "", o, fmt.Errorf("%w: %q is not the path of a file", engine.ErrAddress, dsn)
	}
	path, err = filepath.Abs(rest)
	return path, o, err
}

// fileURL returns the URL of a SQLite file for the driver. The path is escaped, or ?, # and % in it would
// open another file. Settings are part of the URL, because the driver may replace a connection after a
// cancelled statement.
func fileURL(path string, settings url.Values) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: settings.Encode()}
	return u.String()
}

// walLimit is the size in bytes to which a writer cuts a -wal file that a long read let grow, and from which
// TrimWAL empties it.
const walLimit = 16 << 20

// writerURL is for the connection of the commit loop.
func writerURL(path, sync string) string {
	settings := url.Values{
		"mode": {"rw"},
		"_pragma": {
			"busy_timeout(0)", // its backoff starves writers; Engine.Begin waits fairly
			"journal_mode(wal)",
			fmt.Sprintf("journal_size_limit(%d)", walLimit),
			"recursive_triggers(1)", // or OR REPLACE would pass the DELETE guard
			"synchronous(" + sync + ")",
			"temp_store(memory)",
			"trusted_schema(0)",
			fmt.Sprintf("wal_autocheckpoint(%d)", autoCheckpoint(sync)),
		},
	}
	return fileURL(path, settings)
}

// autoCheckpoint is from how many frames in the -wal file on SQLite makes a checkpoint after a commit: none
// where startLateSyncs is to do so.
func autoCheckpoint(sync string) int {
	if sync == "full" {
		return 0
	}
	return maxFrames
}

// readerURL is for snapshots.
func readerURL(path string) string {
	return fileURL(path, url.Values{
		"mode":        {"ro"},
		"_query_only": {"1"},
		"_pragma":     {"busy_timeout(5000)", "temp_store(memory)", "trusted_schema(0)"},
	})
}

// vacuumURL returns readerURL without query_only, under which VACUUM INTO refuses to write its copy.
func vacuumURL(path string) string {
	return fileURL(path, url.Values{
		"mode":    {"ro"},
		"_pragma": {"busy_timeout(5000)", "temp_store(memory)", "trusted_schema(0)"},
	})
}

// stillURL is readerURL for a file that no process writes.
func stillURL(path string) string {
	return fileURL(path, url.Values{
		"mode":        {"ro"},
		"immutable":   {"1"},
		"_query_only": {"1"},
		"_pragma":     {"temp_store(memory)", "trusted_schema(0)"},
	})
}

// immutableURL is for a file that no process writes: SQLite takes no locks and makes no -wal or -shm file.
func immutableURL(path string) string {
	return fileURL(path, url.Values{"mode": {"ro"}, "immutable": {"1"}})
}

// headerURL is immutableURL for reading the header only. During a checkpoint, or after one that a crash cut
// off, the header counts pages that do not exist yet; SQLite would report that as damage.
func headerURL(path string) string {
	return fileURL(path, url.Values{"mode": {"ro"}, "immutable": {"1"}, "_pragma": {"writable_schema(1)"}})
}
