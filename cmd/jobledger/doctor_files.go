package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands/worker"
	"jobledger/ledger"
)

const (
	leastFree   = 64 << 20         // below this a ledger may stop any moment
	mostBacklog = 32 << 20         // eight times what SQLite lets the -wal file grow to when nothing is in the way
	mostWAL     = 64 << 20         // it has been in the way once
	clockSlack  = 2 * time.Second  // between clocks that go right
	copyPast    = time.Hour        // an unfinished copy is not being made any more
	journalPast = 10 * time.Second // the switch into WAL mode is over
)

// beside are the files and folders that belong to a ledger. None of them is opened: closing one would drop SQLite's
// locks on it.
func (d *doctor) beside() []string {
	return []string{d.real, d.real + "-wal", d.real + "-shm", d.path + ".bell", worker.LogFolder(d.path)}
}

// files looks at what the file system says. options are those of --db.
func (d *doctor) files(options string) {
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
	if wal, err := os.Stat(d.real + "-wal"); err == nil && wal.Size() > mostWAL {
		d.advise(checkWAL, "it is used again and does not grow by itself; when the last process that has the ledger open ends, it is removed",
			"%s-wal is %s large: something kept it from being used again", d.real, byteSize(wal.Size()))
	}
}

func (d *doctor) permissions(name string, main fs.FileInfo) {
	info, err := os.Stat(name)
	if err != nil {
		return
	}
	mode := info.Mode().Perm()
	if mode&0o002 != 0 {
		d.problem(checkWritable, "chmod o-w "+cli.QuoteShell(name), "everybody may write %s (%s): whoever can write the ledger can run jobs", name, info.Mode())
	}
	if mode&0o004 != 0 && !strings.HasSuffix(name, "-shm") && (!info.IsDir() || mode&0o001 != 0) {
		d.advise(checkReadable, "chmod o-rwx "+cli.QuoteShell(name), "everybody may read %s (%s), and with it payloads and results", name, info.Mode())
	}
	owner, known := ownerOf(info)
	ours, _ := ownerOf(main)
	switch {
	case !known:
	case owner != ours:
		d.problem(checkOwner, fmt.Sprintf("chown -R --reference=%s %s", cli.QuoteShell(d.real), cli.QuoteShell(name)),
			"%s belongs to %s, the ledger to %s: one of them may not be able to use it", name, userName(owner), userName(ours))
	case name == d.real && owner != os.Getuid() && os.Getuid() != 0:
		d.advise(checkOwner, "run commands as "+userName(owner)+", or files that you make will be in its way",
			"the ledger belongs to %s, and you are %s", userName(owner), userName(os.Getuid()))
	}
}

func (d *doctor) links(info fs.FileInfo) {
	if link, err := os.Lstat(d.path); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		d.advise(checkLink, "use --db "+cli.QuoteShell(d.real)+" everywhere", "%s leads to %s by a link: processes that use the one name do not hear the bell of the other, and keep logs elsewhere", d.path, d.real)
	}
	if n := linksOf(info); n > 1 {
		d.problem(checkNames, "find the other with 'find "+cli.QuoteShell(filepath.Dir(d.real))+" -samefile "+cli.QuoteShell(d.real)+"' and remove it, or make it a copy",
			"%s has %d names (hard links): SQLite keeps a -wal file for each, and two processes that use different names destroy the ledger", d.real, n)
	}
}

func (d *doctor) folder() {
	folder := filepath.Dir(d.real)
	info, err := os.Stat(folder)
	if err != nil {
		return
	}
	switch {
	case info.Mode().Perm()&0o002 == 0:
	case info.Mode()&fs.ModeSticky == 0:
		d.problem(checkFolder, "chmod o-w "+cli.QuoteShell(folder), "everybody may write into the folder %s (%s), and so replace the ledger", folder, info.Mode())
	default:
		d.advise(checkFolder, "keep the ledger in a folder of its own", "everybody may make files in the folder %s (%s), also such as SQLite would take for the ledger's", folder, info.Mode())
	}
	if !mayWrite(folder) {
		d.advise(checkFolder, "run as a user who may, or allow it", "you may not write into the folder %s, where SQLite makes its -wal and -shm files: commands that write will fail", folder)
	}
}

// fileSystem looks at the place of a ledger of size bytes; allowed says that a network file system is wanted.
func (d *doctor) fileSystem(place ledger.FileSystem, size int64, allowed bool) {
	switch folder := filepath.Dir(d.real); {
	case !place.Known:
	case place.ReadOnly:
		d.problem(checkSpace, "mount it so that it may be written; after an error of the disk, check that first", "the file system of %s may only be read", folder)
	case place.NoFiles:
		d.problem(checkSpace, "remove files there", "no further file can be made on the file system of %s", folder)
	case place.Free < leastFree:
		d.problem(checkSpace, "free some space; jobledger stops taking commands when there is none, and goes on by itself when there is some", "only %s free on the file system of %s", byteSize(int64(place.Free)), folder)
	case place.Free < uint64(size):
		d.advise(checkSpace, "free some space, or make backups elsewhere", "%s free on the file system of %s: less than the ledger has, so a copy beside it does not fit", byteSize(int64(place.Free)), folder)
	}
	switch {
	case place.Network == "":
	case allowed:
		d.advise(checkNetwork, "keep the ledger on a local disk", "%s is on a network file system (%s); --db allows it, but SQLite's locks cannot be trusted there", d.real, place.Network)
	default:
		d.problem(checkNetwork, "keep the ledger on a local disk", "%s is on a network file system (%s), where SQLite's locks cannot be trusted", d.real, place.Network)
	}
}

// leftovers finds copies that were never finished: of backup, replay, import and restore, cut off.
func (d *doctor) leftovers() {
	names, err := filepath.Glob(filepath.Join(escapeGlob(filepath.Dir(d.real)), "."+escapeGlob(filepath.Base(d.real))+".*"))
	if err != nil {
		return
	}
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && d.Now().Sub(info.ModTime()) > copyPast {
			d.advise(checkLeft, "rm "+cli.QuoteShell(name), "%s (%s) is an unfinished copy that somebody gave up %s", name, byteSize(info.Size()), render.Age(info.ModTime(), d.Now()))
		}
	}
}

// escapeGlob is text as a pattern that matches nothing else.
func escapeGlob(text string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(text)
}

// bell looks at what wakes workers and makes writers take turns.
func (d *doctor) bell() {
	folder := d.path + ".bell"
	info, err := os.Lstat(folder)
	if err != nil {
		return
	}
	if !info.IsDir() {
		d.advise(checkBell, "mv "+cli.QuoteShell(folder)+" elsewhere", "%s is no folder: idle workers learn of new jobs by polling", folder)
		return
	}
	for _, file := range []string{"bell", "gate", "lock"} {
		info, err := os.Lstat(filepath.Join(folder, file))
		if err == nil && !info.Mode().IsRegular() {
			d.advise(checkBell, "rm -r "+cli.QuoteShell(folder)+" when no process uses the ledger", "%s is no file: idle workers poll, and writers do not take turns", filepath.Join(folder, file))
		}
	}
}

// fileTimes compares the file system's clock with this one, as far as it shows: what was written in the future.
func (d *doctor) fileTimes() {
	for _, name := range []string{d.real, d.real + "-wal"} {
		if info, err := os.Stat(name); err == nil && info.ModTime().Sub(d.Now()) > clockSlack {
			d.problem(checkClock, "set this machine's clock, or the file server's", "%s was written at %s: the clock of the file system is ahead of this one, or this one has been set back", name, d.since(info.ModTime()))
			return
		}
	}
}

// users looks at who has the ledger open, as far as the kernel tells.
func (d *doctor) users() {
	for _, h := range ledger.LockHolders(d.path) {
		who := fmt.Sprintf("%s (pid %d)", h.Program, h.PID)
		remedy := fmt.Sprintf("kill -CONT %d lets it go on; kill -KILL %[1]d ends it, and nothing acknowledged is lost", h.PID)
		switch {
		case !h.Stopped:
		case h.Writes:
			d.problem(checkStopped, remedy, "%s was stopped by a signal and holds the write lock: nobody can write", who)
		case h.Turn:
			d.problem(checkStopped, remedy, "%s was stopped by a signal while it had its turn to write: everybody else waits for half a second each time", who)
		case h.Reads:
			d.problem(checkStopped, remedy, "%s was stopped by a signal in the middle of a read: the -wal file grows for as long as that lasts", who)
		default:
			d.advise(checkStopped, remedy, "%s has the ledger open and was stopped by a signal", who)
		}
	}
}
