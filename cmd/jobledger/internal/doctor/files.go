package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/archive"
	"jobledger/ledger"
)

// Sizes of a -wal file, in bytes.
const (
	MaxBacklog = 32 << 20 // not yet in the ledger's file; eight times what accumulates without a long read
	MaxWAL     = 64 << 20 // of the file itself; a larger one was held up at some time
)

const (
	minFree    = 64 << 20         // bytes; with less, a ledger may stop at any moment
	clockSlack = 2 * time.Second  // between two clocks that are right
	copyAge    = time.Hour        // after the last write to a temporary file, its copy is not running any more
	journalAge = 10 * time.Second // a -journal exists briefly while a file switches to WAL mode
)

// files checks what the file system knows. options are those of the DSN. It opens none of the ledger's files:
// closing one would drop SQLite's locks on it.
func (d *examination) files(options string) {
	info, err := os.Stat(d.real)
	if err != nil {
		return
	}
	for _, name := range []string{d.real, d.real + "-wal", d.real + "-shm", d.Ledger + ".bell", d.Logs,
		d.Ledger + archive.Suffix} {
		d.permissions(name, info)
	}
	d.links(strings.Contains(options, "names=allow"))
	d.folder()
	d.fileSystem(ledger.FileSystemOf(d.real), info.Size(), strings.Contains(options, "network=allow"))
	d.temporaryFiles()
	d.doorbell()
	d.fileTimes()
	d.keys()
	if wal, err := os.Stat(d.real + "-wal"); err == nil && wal.Size() > MaxWAL {
		d.advise(CodeWAL,
			"none needed: SQLite reuses the file, and removes it when the last process that has the ledger open ends",
			"%s-wal is %s large: something kept it from being used again", d.real, words.ByteSize(wal.Size()))
	}
}

// permissions checks the mode and the owner of one file or folder of the ledger. main is the ledger's own
// file.
func (d *examination) permissions(name string, main fs.FileInfo) {
	info, err := os.Stat(name)
	if err != nil {
		return
	}
	if othersMay(info, 0o002) {
		d.problem(CodeWritable, "chmod o-w "+words.QuoteShell(name),
			"every user may write %s (%s): a user who can write the ledger can run jobs", name, info.Mode())
	}
	if othersMay(info, 0o004) && !strings.HasSuffix(name, "-shm") && (!info.IsDir() || othersMay(info, 0o001)) {
		d.advise(CodeReadable, "chmod o-rwx "+words.QuoteShell(name),
			"every user may read %s (%s), and with it payloads and results", name, info.Mode())
	}
	owner, known := ownerOf(info)
	ours, _ := ownerOf(main)
	whose, chown := "the ledger to ", "--reference="+words.QuoteShell(d.real)
	if uid, _, asUnit := d.unitsOwner(); asUnit { // whose the ledger's own files are to be, unitsRights says
		if strings.HasPrefix(name, d.real) && !info.IsDir() {
			return
		}
		ours, whose, chown = uid, "the units run as ", unitsUser+":"+unitsUser
	}
	switch {
	case !known, sharedByGroup(info, main):
	case owner != ours:
		d.problem(CodeOwner, fmt.Sprintf("chown -R %s %s", chown, words.QuoteShell(name)),
			"%s belongs to %s, %s%s: %s", name, userName(owner), whose, userName(ours), d.effectOf(name))
	case name == d.real && owner != os.Getuid() && os.Getuid() != 0 && !mayWriteFile(name):
		d.advise(CodeOwner, "run commands as "+userName(owner)+", who may not be able to use files that you make",
			"the ledger belongs to %s, and you are %s", userName(owner), userName(os.Getuid()))
	}
}

// effectOf says what it means that a file or folder of the ledger belongs to another user.
func (d *examination) effectOf(name string) string {
	switch name {
	case d.Logs:
		return "its owner can replace what is in it, so workers of other users keep no output there"
	case d.Ledger + ".bell":
		return "workers of other users learn of new jobs by polling, and their writers do not take turns"
	}
	return "one of them may not be able to use it"
}

// links checks the names of the ledger's file. allowed says that the DSN allows several.
func (d *examination) links(allowed bool) {
	if link, err := os.Lstat(d.Ledger); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		d.advise(CodeLink, "use --db "+words.QuoteShell(d.real)+" everywhere",
			"%s leads to %s by a link: "+
				"processes that use different names do not notify each other, and keep logs apart",
			d.Ledger, d.real)
	}
	report := d.problem
	if allowed {
		report = d.advise
	}
	names := ledger.NamesOf(d.real)
	if names.Links > 1 {
		find := "find " + words.QuoteShell(filepath.Dir(d.real)) + " -samefile " + words.QuoteShell(d.real)
		report(CodeSecondName, "find the other with '"+find+"' and remove it, or make it a copy",
			"%s has %d names (hard links): SQLite keeps a -wal file for each, "+
				"and two processes that use different names destroy the ledger", d.real, names.Links)
	}
	if names.Mounted {
		folder := words.QuoteShell(filepath.Dir(d.real))
		report(CodeSecondName, "mount the folder that holds the ledger to "+folder+", not the file alone",
			"%s is mounted without its folder: its -wal file is not next to the file that was mounted, "+
				"and two processes that use different names destroy the ledger", d.real)
	}
}

// folder checks the folder of the ledger.
func (d *examination) folder() {
	folder := filepath.Dir(d.real)
	info, err := os.Stat(folder)
	if err != nil {
		return
	}
	switch {
	case !othersMay(info, 0o002):
	case info.Mode()&fs.ModeSticky == 0:
		d.problem(CodeFolder, "chmod o-w "+words.QuoteShell(folder),
			"every user may write into the folder %s (%s), and so replace the ledger", folder, info.Mode())
	default:
		d.advise(CodeFolder, "keep the ledger in a folder of its own",
			"every user may make files in the folder %s (%s), including files that SQLite would take for the ledger's",
			folder, info.Mode())
	}
	if !mayWrite(folder) {
		d.advise(CodeFolder, "run as a user who may, or allow it",
			"you may not write into the folder %s, where SQLite makes its -wal and -shm files: "+
				"commands that write will fail",
			folder)
	}
}

// fileSystem checks where a ledger of size bytes is stored. allowed says that the DSN allows a network file
// system.
func (d *examination) fileSystem(place ledger.FileSystem, size int64, allowed bool) {
	switch folder := filepath.Dir(d.real); {
	case !place.Known:
	case place.ReadOnly:
		d.problem(CodeSpace,
			"mount it read-write, unless it is to be only read; after a disk error, check the disk first",
			"the file system of %s is read-only: commands that write will fail", folder)
	case place.NoFiles:
		d.problem(CodeSpace, "remove files there", "no further file can be made on the file system of %s", folder)
	case place.Free < minFree:
		d.problem(CodeSpace,
			"free some space; without any, jobledger refuses commands, and continues as soon as there is some",
			"only %s free on the file system of %s", words.ByteSize(int64(place.Free)), folder)
	case place.Free < uint64(size):
		d.advise(CodeSpace, "free some space, or make backups elsewhere",
			"%s free on the file system of %s: less than the size of the ledger, so a copy does not fit there",
			words.ByteSize(int64(place.Free)), folder)
	}
	const local = "keep the ledger on a local disk"
	switch {
	case place.Network == "":
	case allowed:
		d.advise(CodeNetwork, local,
			"%s is on a network file system (%s); --db allows it, but SQLite's locks cannot be trusted there",
			d.real, place.Network)
	default:
		d.problem(CodeNetwork, local, "%s is on a network file system (%s), where SQLite's locks cannot be trusted",
			d.real, place.Network)
	}
}

// temporaryFiles finds files that interrupted copies left: of backup, replay, import and restore.
func (d *examination) temporaryFiles() {
	folder, base := filepath.Split(d.real)
	names, err := filepath.Glob(filepath.Join(escapeGlob(folder), "."+escapeGlob(base)+".*"))
	if err != nil {
		return
	}
	for _, name := range names {
		info, err := os.Lstat(name)
		if err == nil && info.Mode().IsRegular() && d.Now().Sub(info.ModTime()) > copyAge {
			d.advise(CodeTemporary, "rm "+words.QuoteShell(name),
				"%s (%s) is the temporary file of a copy that was interrupted %s",
				name, words.ByteSize(info.Size()), words.AgeOrOn(info.ModTime(), d.Now()))
		}
	}
}

// escapeGlob returns a pattern that matches text only.
func escapeGlob(text string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(text)
}

// doorbell checks the folder that wakes idle workers and queues writers.
func (d *examination) doorbell() {
	folder := d.Ledger + ".bell"
	info, err := os.Lstat(folder)
	if err != nil {
		return
	}
	if !info.IsDir() {
		d.advise(CodeDoorbell, "mv "+words.QuoteShell(folder)+" elsewhere",
			"%s is not a folder: idle workers learn of new jobs by polling", folder)
		return
	}
	for _, file := range []string{"bell", "gate", "lock"} {
		info, err := os.Lstat(filepath.Join(folder, file))
		if err == nil && !info.Mode().IsRegular() {
			d.advise(CodeDoorbell, "rm -r "+words.QuoteShell(folder)+" when no process uses the ledger",
				"%s is not a file: idle workers poll, and writers do not take turns", filepath.Join(folder, file))
		}
	}
}

// fileTimes finds a file that was written in the future, the only sign of a file system with another clock.
func (d *examination) fileTimes() {
	for _, name := range []string{d.real, d.real + "-wal"} {
		if info, err := os.Stat(name); err == nil && info.ModTime().Sub(d.Now()) > clockSlack {
			d.problem(CodeClock, "set this machine's clock, or the file server's",
				"%s was written at %s: "+
					"the clock of the file system is ahead of this one, or this one has been set back",
				name, d.since(info.ModTime()))
			return
		}
	}
}

// users finds stopped processes that have the ledger open, as far as the kernel shows them.
func (d *examination) users() {
	for _, h := range ledger.LockHolders(d.Ledger) {
		if !h.Stopped {
			continue
		}
		process := fmt.Sprintf("%s (pid %d)", h.Program, h.PID)
		remedy := fmt.Sprintf("kill -CONT %d resumes it; kill -KILL %[1]d ends it, "+
			"and nothing acknowledged is lost", h.PID)
		switch {
		case h.Writes:
			d.problem(CodeStopped, remedy,
				"%s was stopped by a signal and holds the write lock: no other process can write", process)
		case h.InQueue:
			d.problem(CodeStopped, remedy,
				"%s was stopped by a signal while it had its turn to write: "+
					"every other writer waits half a second each time",
				process)
		case h.Reads:
			d.problem(CodeStopped, remedy,
				"%s was stopped by a signal in the middle of a read: the -wal file grows until it resumes", process)
		default:
			d.advise(CodeStopped, remedy, "%s has the ledger open and was stopped by a signal", process)
		}
	}
}
