package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
)

// Severity says how bad a finding is.
type Severity string

const (
	Problem Severity = "problem" // something does not work or will stop working, or strangers can do harm
	Advice  Severity = "advice"  // worth knowing
)

// Finding is one thing that is wrong.
type Finding struct {
	Code     string   `json:"code"` // one of the constants below
	Severity Severity `json:"severity"`
	Seen     string   `json:"seen"`   // one sentence without its full stop
	Remedy   string   `json:"remedy"` // what to do, often a line for a shell
}

// The codes of findings. Scripts depend on them: a code never changes its meaning and is never reused.
const (
	CodeWritable       = "D01" // a file that everyone may write
	CodeReadable       = "D02" // a file that everyone may read
	CodeFolder         = "D03" // permissions of the folder
	CodeOwner          = "D04" // files of different owners
	CodeLink           = "D05" // a symbolic link
	CodeSecondName     = "D06" // a file with several names
	CodeNetwork        = "D07" // a network file system
	CodeSpace          = "D08" // no space, or a read-only file system
	CodeWAL            = "D09" // a -wal file that grows
	CodeForeignSidecar = "D10" // a -wal, -shm or -journal file of another ledger
	CodeStopped        = "D11" // a stopped process that has the ledger open
	CodeTemporary      = "D12" // a temporary file of an interrupted copy
	CodeDoorbell       = "D13" // the folder that wakes workers and queues writers
	CodeUnreadable     = "D14" // the ledger, or a part of it, cannot be read
	CodePages          = "D15" // SQLite's integrity check, with Options.Deep
	CodeSchema         = "D16" // an old schema
	CodeSettings       = "D17" // settings that risk acknowledged commands
	CodeGuards         = "D18" // triggers and constraints
	CodeClock          = "D19" // clocks that differ
	CodeLeases         = "D20" // leases that ran out and were not swept
	CodeSilent         = "D21" // workers without a sign of life
	CodePaused         = "D22" // paused queues with ready jobs
	CodeStranded       = "D23" // ready jobs that no worker can take
	CodeLogs           = "D24" // output of jobs that are erased or unknown
	CodeWriter         = "D25" // a session that holds the write lock for long
	CodeVacuum         = "D26" // what keeps PostgreSQL from vacuuming
	CodeRights         = "D27" // this user may not write
	CodeServer         = "D28" // connections and transaction IDs of the server
	CodeCopy           = "D29" // a copy that replay made, of which leases, workers and queues are not judged
	CodeOutput         = "D30" // output that is not what a command wrote
	CodeKey            = "D31" // a private key next to the ledger
	CodeUnsealed       = "D32" // events that are not sealed, though sealing is on
	CodeCheckpoint     = "D33" // a seal of which no checkpoint was handed out
	CodeArchive        = "D34" // a file of the archive: not there, of another size, or of an older program
	CodeHeld           = "D35" // jobs that have been held for long
	CodeRemoval        = "D36" // a removal that did not end, or a policy that is not carried out
	CodeOpen           = "D37" // jobs that are open for much longer than the archive policy has it
	CodeUnits          = "D38" // units of systemd that are not enabled, or have nothing to run
	CodeUnitsUser      = "D39" // files that the units' user may not write
	CodeReplaced       = "D40" // a process whose program was replaced
	CodeFailing        = "D41" // a queue whose attempts fail
	CodeBehind         = "D42" // jobs that wait for longer than is normal
	CodeVersion        = "D43" // a new version fails more often than the one before
	CodeSchedule       = "D44" // a schedule that is not carried out, or whose last job failed
	CodeGaveUp         = "D45" // jobs that failed for good
	CodeLost           = "D46" // jobs that were taken back from a worker that let their leases run out
	CodeKeyframes      = "D47" // many events since the last keyframe
	CodeInbox          = "D49" // rows of the inbox that no process moves, or that were refused
)

// Options say how a ledger is examined. The zero value works.
type Options struct {
	Deep   bool             // run SQLite's integrity check of the whole file
	Now    func() time.Time // the clock, in the zone in which times are shown; nil: time.Now
	DBFlag string           // appended to commands in remedies, such as " --db jobs.db"
	Logs   string           // the folder with the output of commands; "": the one next to the ledger's file
	// Archive is the folder with the files of archived events; "": the one next to the ledger's file.
	Archive string
	// Root is the folder that has the system's files, such as etc and usr; "": the root of this system.
	Root string
}

// Report is the result of an examination.
type Report struct {
	Ledger   string    // the absolute path, or the address without a password
	Engine   string    // with its version
	Schema   int       // version; 0 if it could not be read
	Events   int64     // in the ledger; 0 if they could not be read
	Findings []Finding // problems first, then by code
}

// Problems returns how many findings are problems.
func (r Report) Problems() (n int) {
	for _, f := range r.Findings {
		if f.Severity == Problem {
			n++
		}
	}
	return n
}

// Examine examines the ledger at dsn. It fails only if there is no ledger of this program there, if the
// server cannot be reached, or if ctx ends.
func Examine(ctx context.Context, dsn string, o Options) (Report, error) {
	o.Root = cmp.Or(o.Root, "/")
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &examination{dsn: dsn, Options: o}
	examine := d.examineFile
	if ledger.IsServerAddress(dsn) {
		examine = d.examineServer
	}
	if err := examine(ctx); err != nil {
		return Report{}, err
	}
	d.service()
	slices.SortStableFunc(d.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), strings.Compare(a.Code, b.Code))
	})
	return d.Report, nil
}

// examination gathers a report.
type examination struct {
	Report
	Options
	dsn  string
	real string // the path of a ledger in a file, without links
	copy bool   // it is a copy as of a moment, with which nothing works
}

func (d *examination) problem(code, remedy, format string, args ...any) {
	d.Findings = append(d.Findings, Finding{code, Problem, fmt.Sprintf(format, args...), remedy})
}

func (d *examination) advise(code, remedy, format string, args ...any) {
	d.Findings = append(d.Findings, Finding{code, Advice, fmt.Sprintf(format, args...), remedy})
}

// command returns a line for a shell that runs jobledger on this ledger.
func (d *examination) command(words string) string { return "jobledger " + words + d.DBFlag }

// since formats t with its distance from now.
func (d *examination) since(t time.Time) string {
	return fmt.Sprintf("%s (%s)", words.Time(t.In(d.Now().Location())), words.Age(t, d.Now()))
}

// examineFile examines a ledger in SQLite.
func (d *examination) examineFile(ctx context.Context) (err error) {
	path, options := splitDSN(d.dsn)
	if d.Ledger, err = filepath.Abs(path); err != nil {
		return err
	}
	d.real = d.Ledger
	if real, err := filepath.EvalSymlinks(d.Ledger); err == nil {
		d.real = real
	}
	if d.Logs == "" {
		d.Logs = attemptlog.Folder(d.Ledger)
	}
	// Before SQLite opens it: run by root, SQLite gives the -wal and -shm files back to the ledger's owner.
	if info, err := os.Stat(d.real); err == nil && info.Mode().IsRegular() {
		d.files(options)
		d.users()
		d.replaced()
	}
	first := ledger.InspectFile(ctx, d.dsn, func(*ledger.Tx, ledger.FileFacts) error { return nil })
	for _, none := range []error{ledger.ErrNoLedger, ledger.ErrNotALedger, ledger.ErrNewerSchema,
		fs.ErrNotExist} {
		if errors.Is(first, none) {
			return first
		}
	}
	d.content(ctx, first)
	if strings.Contains(options, "sync=normal") {
		d.advise(CodeSettings, "leave out ?sync=normal where no command may be lost",
			"--db says sync=normal: a power cut may lose the last commands")
	}
	return ctx.Err()
}

// splitDSN splits the DSN of a ledger in a file.
func splitDSN(dsn string) (path, options string) {
	path, isURL := strings.CutPrefix(dsn, "sqlite:")
	if isURL {
		path, options, _ = strings.Cut(path, "?")
	}
	return path, options
}
