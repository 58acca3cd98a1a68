package fault

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/ledger/segment"
	"jobledger/projection"
)

// knownErrors maps the errors of other packages to exit codes. The first row that matches wins, so put the
// particular before the general.
var knownErrors = []struct {
	is   error
	code int
	hint string
}{
	{commands.ErrCancelled, ExitCancelled, ""},
	{commands.ErrLeaseLost, ExitLeaseLost, ""},
	{commands.ErrNotSealing, ExitConflict, "'jobledger seal --init' switches it on"},
	{commands.ErrConflict, ExitConflict, ""},
	{commands.ErrNoJob, ExitNoJob, ""},
	{schedule.ErrNone, ExitNothing, "'jobledger schedule list' shows those that there are"},
	{commands.ErrInvalid, ExitUsage, ""},
	{ledger.ErrAddress, ExitUsage, "--db and JOBLEDGER_DB take the path of a file, sqlite:PATH?sync=normal, " +
		"or postgres://USER@HOST/DATABASE"},
	{ledger.ErrNoLedger, ExitUsage, "'jobledger init' makes one; --db or JOBLEDGER_DB says where"},
	{ledger.ErrNotALedger, ExitUsage, "give --db the path of a ledger, or of a file that does not exist yet"},
	{ledger.ErrNewerSchema, ExitUsage, ""},
	{ledger.ErrOlderSchema, ExitUsage, "'jobledger migrate' brings it up to date, as the schema's owner; " +
		"programs of the previous version go on"},
	{ledger.ErrPooled, ExitUsage, "set pool_mode = session for this database in the pooler, or give --db the " +
		"server itself"},
	{ledger.ErrForeignSidecar, ExitUnexpected,
		"end what still uses the old ledger and move its -wal and -shm away, " +
			"then try again"},
	{ledger.ErrSecondName, ExitUnexpected, "'jobledger doctor' says more"},
	{ledger.ErrReplaced, ExitBusy, "the file was exchanged under this process; start it again"},
	{ledger.ErrFull, ExitBusy, "the disk is full; free some space and try again; nothing is done twice"},
	{syscall.EMFILE, ExitBusy, "this process has too many open files; raise 'ulimit -n' and try again"},
	{syscall.ENFILE, ExitBusy, "this machine has too many open files; try again when some are closed"},
	{ledger.ErrIO, ExitBusy, "a disk fault, a quota, or a limit that 'ulimit -a' shows; fix it and try again; " +
		"nothing is done twice"},
	{ledger.ErrUnknown, ExitBusy, "send the same command again: if it was done, you get the same answer"},
	{ledger.ErrBusy, ExitBusy, "another process has held the write lock for too long; try again"},
	{ledger.ErrReadOnly, ExitUnexpected, "you need to be allowed to write the ledger, its folder, and the " +
		"-wal and -shm next to it"},
	{ledger.ErrAltered, ExitUnexpected, "'jobledger verify' lists what is altered, 'jobledger rebuild' puts " +
		"it right; commands that only read still work"},
	{ledger.ErrDamaged, ExitUnexpected, "'jobledger verify' says what is wrong; restore a copy " +
		"made by 'jobledger backup'"},
	{ledger.ErrUnknownKind, ExitUnexpected, "a newer jobledger wrote it, or it is damaged; 'jobledger " +
		"verify' says more"},
	{projection.ErrArchived, ExitNothing, "what has left the ledger is in its archive"},
	{archive.ErrMissing, ExitNothing, "--archive DIR or JOBLEDGER_ARCHIVE says where the archive's files are"},
	{segment.ErrDamaged, ExitDiscrepancy, "'jobledger archive check' says what is wrong with the archive"},
	{context.DeadlineExceeded, ExitTimedOut, ""},
	{context.Canceled, ExitUnexpected, ""},
	{syscall.ENAMETOOLONG, ExitUsage, "give a shorter path"},
	{syscall.ENOSPC, ExitBusy, "the disk is full; free some space and try again"},
	{syscall.EFBIG, ExitBusy, "a limit to the size of files, which 'ulimit -f' shows; put it right and try " +
		"again"},
	{syscall.EDQUOT, ExitBusy, "the disk quota is used up; free some space and try again"},
	// A reader that went away (… | head) has seen what it wanted.
	{syscall.EPIPE, ExitOK, ""},
}

// serverHints replace the hints of knownErrors where the ledger is in PostgreSQL.
var serverHints = []struct {
	is   error
	hint string
}{
	{ledger.ErrAddress, "--db and JOBLEDGER_DB take postgres://USER@HOST/DATABASE; this program's own " +
		"options are ?schema=NAME, ?sync=normal and ?listen=off"},
	{ledger.ErrNoLedger, "'jobledger init' makes one, in a database that is there ('createdb' makes that); " +
		"--db or JOBLEDGER_DB says where"},
	{ledger.ErrNotALedger, "give --db another database, or another schema of this one: ?schema=NAME"},
	{ledger.ErrReplaced, "another server answers now, which lacks events, as after a failover that lost " +
		"commits; check what became of them"},
	{ledger.ErrFull, "the server's disk is full; free some space there and try again; nothing is done " +
		"twice"},
	{ledger.ErrIO, "the server is down or out of reach; try again; nothing is done twice"},
	{ledger.ErrUnknown, "send the same command again: if it was done, you get the same answer"},
	{ledger.ErrNoSession, "all sessions of the pooler are taken, and each worker keeps its own: give the " +
		"pool more (PgBouncer: default_pool_size, max_client_conn), end a worker, or give workers the " +
		"server itself as --db; then try again"},
	{ledger.ErrBusy, "another process has held the write lock for too long, or the server accepts no " +
		"more connections; 'jobledger doctor' may say more, else try again"},
	{ledger.ErrReadOnly, "to write takes the rights of jobledger_worker, to make a ledger those of its " +
		"owner, also to put its guards back (see schema/postgres/roles.sql), and a server that is not a standby"},
	{ledger.ErrAltered, "'jobledger verify' lists what is altered, 'jobledger rebuild' puts it right as the " +
		"schema's owner; commands that only read still work"},
	{ledger.ErrDamaged, "'jobledger verify' says what is wrong; restore a backup of the database"},
}

// ServerHint returns the hint for err where the ledger is in PostgreSQL. A hint of the error's own stays.
func ServerHint(err error, hint string) string {
	if _, ok := errors.AsType[*Error](err); ok {
		return hint
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok { // of a file here
		return hint
	}
	if errors.Is(err, fs.ErrPermission) {
		return "a user of the ledger needs the rights of jobledger_worker or jobledger_auditor: see " +
			"schema/postgres/roles.sql"
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(e.Code, "28") {
		return "PGPASSWORD, ~/.pgpass or --db gives the password; the server's pg_hba.conf says who may come, " +
			"and from where"
	}
	for _, known := range serverHints {
		if errors.Is(err, known.is) {
			return known.hint
		}
	}
	return hint
}
