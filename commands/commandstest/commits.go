package commandstest

import (
	"net/url"
	"reflect"
	"sync"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Verdict is what becomes of a COMMIT.
type Verdict int

const (
	Heard   Verdict = iota // durable, and the caller is answered so
	Undone                 // an error, and nothing is there
	Unheard                // an error, and everything is there
)

// Commits judges the COMMITs of the ledger at one path, for every Store of this process that is opened after
// judgeCommits. Both ways to fail are SQLite's own: a commit hook turns a COMMIT into a ROLLBACK, and the
// error of a WAL hook is reported although the commit has been done.
type Commits struct {
	mu    sync.Mutex
	judge func() Verdict // called for each COMMIT; nil: all are heard
	deaf  bool           // the commit under way will be unheard
	count int
}

// judges are those of this process, by path and by SQLite's handle of a connection.
var judges struct {
	sync.Mutex
	install sync.Once
	paths   map[string]*Commits
	handles map[uintptr]*Commits
}

// JudgeCommits returns the judge of the ledger at path, which must be absolute. It lets everything pass until
// it is reported otherwise.
func JudgeCommits(path string) *Commits {
	judges.install.Do(func() {
		judges.paths, judges.handles = make(map[string]*Commits), make(map[uintptr]*Commits)
		sqlite.RegisterConnectionHook(judgeConnection)
	})
	judges.Lock()
	defer judges.Unlock()
	if judges.paths[path] == nil {
		judges.paths[path] = new(Commits)
	}
	return judges.paths[path]
}

// By sets the judge; nil: all commits are heard.
func (c *Commits) By(judge func() Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judge, c.deaf = judge, false
}

// Seen counts the COMMITs so far.
func (c *Commits) Seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Once lets the next commit be v and all later ones be heard.
func (c *Commits) Once(v Verdict) {
	c.By(func() Verdict {
		next := v
		v = Heard
		return next
	})
}

func (c *Commits) Hear() { c.By(nil) }

func judgeConnection(conn sqlite.ExecQuerierContext, dsn string) error {
	u, err := url.Parse(dsn)
	if err != nil || u.Query().Get("mode") != "rw" {
		return nil // no ledger's writer
	}
	judges.Lock()
	defer judges.Unlock()
	c := judges.paths[u.Path]
	if c == nil {
		return nil
	}
	conn.(sqlite.HookRegisterer).RegisterCommitHook(c.beforeCommit)
	// the driver has no WAL hooks of its own
	db := uintptr(reflect.ValueOf(conn).Elem().FieldByName("db").Uint())
	judges.handles[db] = c
	tls := libc.NewTLS()
	defer tls.Close()
	hook := afterCommit
	sqlite3.Xsqlite3_wal_hook(tls, db, *(*uintptr)(unsafe.Pointer(&hook)), db)
	return nil
}

func (c *Commits) beforeCommit() int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	if c.judge == nil {
		return 0
	}
	v := c.judge()
	c.deaf = v == Unheard
	if v == Undone {
		return 1
	}
	return 0
}

// afterCommit is SQLite's WAL hook.
func afterCommit(_ *libc.TLS, _, db, _ uintptr, _ int32) int32 {
	judges.Lock()
	c := judges.handles[db]
	judges.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf {
		c.deaf = false
		return sqlite3.SQLITE_IOERR
	}
	return sqlite3.SQLITE_OK
}
