package lockholders

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"jobledger/ledger/internal/sqlite/writequeue"

	"golang.org/x/sys/unix"
)

// The bytes of the -shm file on which SQLite takes the locks of a ledger in WAL mode.
const (
	shmWrite     = 120
	shmFirstRead = 123
	shmLastRead  = 127
	shmOpen      = 128 // shared by every process that has the ledger open
)

// List returns the processes that have the ledger at path open, in the order of their ids. It reads the
// kernel's list of locks and opens none of the ledger's files. The list may be incomplete: it lacks processes
// in other containers.
func List(path string) []Holder {
	real := path
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		real = followed
	}
	shm, turn := lockedName(real+"-shm"), lockedName(writequeue.LockFile(path))
	found := make(map[int]*Holder)
	for _, l := range append(listLocks(), listLocks()...) { // one of the two may have missed a lock
		if l.file != shm && l.file != turn {
			continue
		}
		h := found[l.pid]
		if h == nil {
			h = &Holder{PID: l.pid}
			h.Program, h.Stopped = programOf(l.pid)
			found[l.pid] = h
		}
		switch {
		case l.file == turn:
			h.InQueue = true
		case l.covers(shmWrite, shmWrite) && l.exclusive:
			h.Writes = true
		case l.covers(shmFirstRead, shmLastRead) && !l.exclusive:
			h.Reads = true
		}
	}
	var list []Holder
	for _, h := range found {
		list = append(list, *h)
	}
	slices.SortFunc(list, func(a, b Holder) int { return a.PID - b.PID })
	return list
}

// listLocks reads /proc/locks. The kernel returns it in pieces; a lock can be missing if one before it was
// released between two pieces.
func listLocks() (list []lock) {
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer locks.Close()
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		if l, ok := readLock(lines.Text()); ok {
			list = append(list, l)
		}
	}
	return list
}

// lock is a line of /proc/locks.
type lock struct {
	pid         int
	file        string // device and number
	exclusive   bool
	first, last int64
}

func (l lock) covers(first, last int64) bool { return l.first <= last && l.last >= first }

// readLock reads a line such as "5: POSIX  ADVISORY  WRITE 24700 fe:00:9986133 120 120"; not ok for a lock
// that is only waited for, or that no process owns.
func readLock(line string) (l lock, ok bool) {
	f := strings.Fields(line)
	if len(f) < 8 || f[1] == "->" {
		return l, false
	}
	var err error
	if l.pid, err = strconv.Atoi(f[4]); err != nil || l.pid <= 0 {
		return l, false
	}
	l.file, l.exclusive = f[5], f[3] == "WRITE"
	l.first, err = strconv.ParseInt(f[6], 10, 64)
	if l.last, _ = strconv.ParseInt(f[7], 10, 64); f[7] == "EOF" {
		l.last = 1<<63 - 1
	}
	return l, err == nil
}

// lockedName returns the name of a file in /proc/locks; "" if there is no such file.
func lockedName(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	return fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
}

// programOf returns the name of a process's program, and whether a signal has stopped it.
func programOf(pid int) (name string, stopped bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	text := string(stat)
	from, to := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if from < 0 || to < from || len(text) < to+3 {
		return "", false
	}
	return text[from+1 : to], text[to+2] == 'T'
}

// IsLock reports whether a line of /proc/locks is a process's lock. It is for tests.
func IsLock(line string) bool {
	_, ok := readLock(line)
	return ok
}
