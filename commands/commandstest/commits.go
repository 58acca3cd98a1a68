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

// CommitOutcome is the outcome of a COMMIT.
type CommitOutcome int

const (
	Acknowledged   CommitOutcome = iota // durable, without an error
	RolledBack                          // an error, and nothing is written
	Unacknowledged                      // an error, although everything is durable
	CommittedLate                       // an error, and durable once another requests the lock: a Cutter's
)

// Commits controls the COMMITs of the ledger at one path, for every Store that this process opens after
// ControlCommits. Both failures come from SQLite: a commit hook turns a COMMIT into a ROLLBACK, and an error
// of a WAL hook is returned although the commit is done.
type Commits struct {
	mu       sync.Mutex
	decide   func() CommitOutcome // called for each COMMIT; nil: all are acknowledged
	withhold bool                 // the COMMIT in progress ends as Unacknowledged
	count    int
}

// controlled are the Commits of this process, by path and by SQLite's handle of a connection.
var controlled struct {
	sync.Mutex
	install sync.Once
	paths   map[string]*Commits
	handles map[uintptr]*Commits
}

// ControlCommits returns the control of the ledger at path, which must be absolute. Without a call of By or
// Once, all commits are acknowledged.
func ControlCommits(path string) *Commits {
	controlled.install.Do(func() {
		controlled.paths, controlled.handles = make(map[string]*Commits), make(map[uintptr]*Commits)
		sqlite.RegisterConnectionHook(hookConnection)
	})
	controlled.Lock()
	defer controlled.Unlock()
	if controlled.paths[path] == nil {
		controlled.paths[path] = new(Commits)
	}
	return controlled.paths[path]
}

// By sets the function that decides the outcome of each COMMIT; nil: all are acknowledged.
func (c *Commits) By(decide func() CommitOutcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decide, c.withhold = decide, false
}

// Seen returns the number of COMMITs so far.
func (c *Commits) Seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Once makes v the outcome of the next COMMIT. All later ones are acknowledged.
func (c *Commits) Once(v CommitOutcome) {
	c.By(func() CommitOutcome {
		next := v
		v = Acknowledged
		return next
	})
}

// AcknowledgeAll lets all later COMMITs succeed.
func (c *Commits) AcknowledgeAll() { c.By(nil) }

func hookConnection(conn sqlite.ExecQuerierContext, dsn string) error {
	u, err := url.Parse(dsn)
	if err != nil || u.Query().Get("mode") != "rw" {
		return nil // no ledger's writer
	}
	controlled.Lock()
	defer controlled.Unlock()
	c := controlled.paths[u.Path]
	if c == nil {
		return nil
	}
	conn.(sqlite.HookRegisterer).RegisterCommitHook(c.beforeCommit)
	// the driver has no WAL hooks of its own
	db := uintptr(reflect.ValueOf(conn).Elem().FieldByName("db").Uint())
	controlled.handles[db] = c
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
	if c.decide == nil {
		return 0
	}
	v := c.decide()
	c.withhold = v == Unacknowledged
	if v == RolledBack {
		return 1
	}
	return 0
}

// afterCommit is SQLite's WAL hook.
func afterCommit(_ *libc.TLS, _, db, _ uintptr, _ int32) int32 {
	controlled.Lock()
	c := controlled.handles[db]
	controlled.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.withhold {
		c.withhold = false
		return sqlite3.SQLITE_IOERR
	}
	return sqlite3.SQLITE_OK
}
