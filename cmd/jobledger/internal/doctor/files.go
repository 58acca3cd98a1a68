package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
)

const (
	leastFree   = 64 << 20         // below this a ledger may stop any moment
	MaxBacklog  = 32 << 20         // eight times what SQLite lets the -wal file grow to when nothing is in the way
	MaxWAL      = 64 << 20         // it has been in the way once
	clockSlack  = 2 * time.Second  // between clocks that go right
	copyPast    = time.Hour        // an unfinished copy is not being made any more
	journalPast = 10 * time.Second // the switch into WAL mode is over
)

// beside are the files and folders that belong to a ledger. None of them is opened: closing one would drop SQLite's
// locks on it.
func (d *examination) beside() []string {
	return []string{d.real, d.real + "-wal", d.real + "-shm", d.Ledger + ".bell", d.logs}
}

// files looks at what the file system says. options are those of --db.
func (d *examination) files(options string) {
	info, err := os.Stat(d.real)
	if err != nil {
		return
	}
	for _, name := range d.beside() {
		d.permissions(name, info)
	}
	d.links(info)
	d.folder()
	d.fileSystem(ledger.FileSystemOf(d.real), info.Size(), strings.Contains(options, "network=allow"))
	d.leftovers()
	d.bell()
	d.fileTimes()
	if wal, err := os.Stat(d.real + "-wal"); err == nil && wal.Size() > MaxWAL {
		d.advise(CodeWAL, "it is used again and does not grow by itself; when the last process that has the ledger open ends, it is removed",
			"%s-wal is %s large: something kept it from being used again", d.real, render.ByteSize(wal.Size()))
	}
}

func (d *examination) permissions(name string, main fs.FileInfo) {
	info, err := os.Stat(name)
	if err != nil {
		return
	}
	mode := info.Mode().Perm()
	if mode&0o002 != 0 {
		d.problem(CodeWritable, "chmod o-w "+render.QuoteShell(name), "everybody may write %s (%s): whoever can write the ledger can run jobs", name, info.Mode())
	}
	if mode&0o004 != 0 && !strings.HasSuffix(name, "-shm") && (!info.IsDir() || mode&0o001 != 0) {
		d.advise(CodeReadable, "chmod o-rwx "+render.QuoteShell(name), "everybody may read %s (%s), and with it payloads and results", name, info.Mode())
	}
	owner, known := ownerOf(info)
	ours, _ := ownerOf(main)
	switch {
	case !known:
	case owner != ours:
		d.problem(CodeOwner, fmt.Sprintf("chown -R --reference=%s %s", render.QuoteShell(d.real), render.QuoteShell(name)),
			"%s belongs to %s, the ledger to %s: one of them may not be able to use it", name, userName(owner), userName(ours))
	case name == d.real && owner != os.Getuid() && os.Getuid() != 0:
		d.advise(CodeOwner, "run commands as "+userName(owner)+", or files that you make will be in its way",
			"the ledger belongs to %s, and you are %s", userName(owner), userName(os.Getuid()))
	}
}

func (d *examination) links(info fs.FileInfo) {
	if link, err := os.Lstat(d.Ledger); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		d.advise(CodeLink, "use --db "+render.QuoteShell(d.real)+" everywhere", "%s leads to %s by a link: processes that use the one name do not hear the bell of the other, and keep logs elsewhere", d.Ledger, d.real)
	}
	if n := linksOf(info); n > 1 {
		d.problem(CodeHardLinks, "find the other with 'find "+render.QuoteShell(filepath.Dir(d.real))+" -samefile "+render.QuoteShell(d.real)+"' and remove it, or make it a copy",
			"%s has %d names (hard links): SQLite keeps a -wal file for each, and two processes that use different names destroy the ledger", d.real, n)
	}
}

func (d *examination) folder() {
	folder := filepath.Dir(d.real)
	info, err := os.Stat(folder)
	if err != nil {
		return
	}
	switch {
	case info.Mode().Perm()&0o002 == 0:
	case info.Mode()&fs.ModeSticky == 0:
		d.problem(CodeFolder, "chmod o-w "+render.QuoteShell(folder), "everybody may write into the folder %s (%s), and so replace the ledger", folder, info.Mode())
	default:
		d.advise(CodeFolder, "keep the ledger in a folder of its own", "everybody may make files in the folder %s (%s), also such as SQLite would take for the ledger's", folder, info.Mode())
	}
	if !mayWrite(folder) {
		d.advise(CodeFolder, "run as a user who may, or allow it", "you may not write into the folder %s, where SQLite makes its -wal and -shm files: commands that write will fail", folder)
	}
}

// fileSystem looks at the place of a ledger of size bytes; allowed says that a network file system is wanted.
func (d *examination) fileSystem(place ledger.FileSystem, size int64, allowed bool) {
	switch folder := filepath.Dir(d.real); {
	case !place.Known:
	case place.ReadOnly:
		d.problem(CodeSpace, "mount it so that it may be written; after an error of the disk, check that first", "the file system of %s may only be read", folder)
	case place.NoFiles:
		d.problem(CodeSpace, "remove files there", "no further file can be made on the file system of %s", folder)
	case place.Free < leastFree:
		d.problem(CodeSpace, "free some space; jobledger stops taking commands when there is none, and goes on by itself when there is some", "only %s free on the file system of %s", render.ByteSize(int64(place.Free)), folder)
	case place.Free < uint64(size):
		d.advise(CodeSpace, "free some space, or make backups elsewhere", "%s free on the file system of %s: less than the ledger has, so a copy beside it does not fit", render.ByteSize(int64(place.Free)), folder)
	}
	switch {
	case place.Network == "":
	case allowed:
		d.advise(CodeNetwork, "keep the ledger on a local disk", "%s is on a network file system (%s); --db allows it, but SQLite's locks cannot be trusted there", d.real, place.Network)
	default:
		d.problem(CodeNetwork, "keep the ledger on a local disk", "%s is on a network file system (%s), where SQLite's locks cannot be trusted", d.real, place.Network)
	}
}

// leftovers finds copies that were never finished: of backup, replay, import and restore, cut off.
func (d *examination) leftovers() {
	names, err := filepath.Glob(filepath.Join(escapeGlob(filepath.Dir(d.real)), "."+escapeGlob(filepath.Base(d.real))+".*"))
	if err != nil {
		return
	}
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && d.now().Sub(info.ModTime()) > copyPast {
			d.advise(CodeTemporary, "rm "+render.QuoteShell(name), "%s (%s) is an unfinished copy that somebody gave up %s", name, render.ByteSize(info.Size()), render.Age(info.ModTime(), d.now()))
		}
	}
}

// escapeGlob is text as a pattern that matches nothing else.
func escapeGlob(text string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(text)
}

// bell looks at what wakes workers and makes writers take turns.
func (d *examination) bell() {
	folder := d.Ledger + ".bell"
	info, err := os.Lstat(folder)
	if err != nil {
		return
	}
	if !info.IsDir() {
		d.advise(CodeDoorbell, "mv "+render.QuoteShell(folder)+" elsewhere", "%s is no folder: idle workers learn of new jobs by polling", folder)
		return
	}
	for _, file := range []string{"bell", "gate", "lock"} {
		info, err := os.Lstat(filepath.Join(folder, file))
		if err == nil && !info.Mode().IsRegular() {
			d.advise(CodeDoorbell, "rm -r "+render.QuoteShell(folder)+" when no process uses the ledger", "%s is no file: idle workers poll, and writers do not take turns", filepath.Join(folder, file))
		}
	}
}

// fileTimes compares the file system's clock with this one, as far as it shows: what was written in the future.
func (d *examination) fileTimes() {
	for _, name := range []string{d.real, d.real + "-wal"} {
		if info, err := os.Stat(name); err == nil && info.ModTime().Sub(d.now()) > clockSlack {
			d.problem(CodeClock, "set this machine's clock, or the file server's", "%s was written at %s: the clock of the file system is ahead of this one, or this one has been set back", name, d.since(info.ModTime()))
			return
		}
	}
}

// users looks at who has the ledger open, as far as the kernel tells.
func (d *examination) users() {
	for _, h := range ledger.LockHolders(d.Ledger) {
		who := fmt.Sprintf("%s (pid %d)", h.Program, h.PID)
		remedy := fmt.Sprintf("kill -CONT %d lets it go on; kill -KILL %[1]d ends it, and nothing acknowledged is lost", h.PID)
		switch {
		case !h.Stopped:
		case h.Writes:
			d.problem(CodeStopped, remedy, "%s was stopped by a signal and holds the write lock: nobody can write", who)
		case h.Turn:
			d.problem(CodeStopped, remedy, "%s was stopped by a signal while it had its turn to write: everybody else waits for half a second each time", who)
		case h.Reads:
			d.problem(CodeStopped, remedy, "%s was stopped by a signal in the middle of a read: the -wal file grows for as long as that lasts", who)
		default:
			d.advise(CodeStopped, remedy, "%s has the ledger open and was stopped by a signal", who)
		}
	}
}
