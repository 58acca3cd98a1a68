package child

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// clock reads the time since boot, which goes on while the machine sleeps: a lease does not wait for that.
func clock() instant {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return instant(ts.Nano())
}

// adoptOrphans makes this process the parent of every descendant that loses its own, so that none is ever lost. It
// says no where the descendants could not be found afterwards.
func adoptOrphans() bool {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return false // there is no /proc, or it is that of another PID namespace: its numbers mean other processes
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
}

// childAttr gives the command its own group. The death signal is for the day when somebody kills this process.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reapNext waits for one end and takes it: of any child of a process that adopts, else of pid, whose group it ends.
// It first looks without taking, which may be long, and takes under the lock.
func (s *supervisor) reapNext(pid int) (reaped int, status syscall.WaitStatus, err error) {
	kind, who := unix.P_PID, pid
	if s.adopts {
		kind, who = unix.P_ALL, -1
	}
	for {
		err := unix.Waitid(kind, max(0, who), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return 0, 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.adopts {
		_ = unix.Kill(-pid, unix.SIGKILL) // the zombie still keeps the group's number from being another's
	}
	for {
		reaped, err = syscall.Wait4(who, &status, 0, nil)
		if err != syscall.EINTR {
			break
		}
	}
	s.reaped = s.reaped || reaped == pid
	return reaped, status, err
}

// memoryFile returns a file without a name that holds data in memory, or an error where that is not possible.
func memoryFile(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return fill(os.NewFile(uintptr(fd), "stdin"), data)
}

// killDescendants sends KILL to every descendant of this process and returns how many there are. Parents come before
// their children, since a shell whose child is killed goes on to its next command.
func killDescendants() int {
	self := os.Getpid()
	names, err := readDirNames("/proc")
	if err != nil {
		return 0
	}
	children := map[int][]int{}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if parent, ok := parentOf(pid); ok {
				children[parent] = append(children[parent], pid)
			}
		}
	}
	n := 0
	for parents := []int{self}; len(parents) > 0; parents = parents[1:] {
		for _, pid := range children[parents[0]] {
			killChild(pid, parents[0], self)
			n++
		}
		parents = append(parents, children[parents[0]]...)
	}
	return n
}

// killChild sends KILL to pid if it still is a child of parent, or has meanwhile been orphaned and come to self.
// A pidfd is taken first, so that the number cannot become another's between looking and killing.
func killChild(pid, parent, self int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	if now, ok := parentOf(pid); !ok || now != parent && now != self {
		return
	}
	if err != nil { // an old kernel, or a filter that knows no pidfd
		_ = unix.Kill(pid, unix.SIGKILL)
		return
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// parentOf reads the parent of a process: the second field after the name, which may hold spaces and parentheses.
func parentOf(pid int) (int, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

func readDirNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}
