package child

import (
	"bytes"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// clock reads the time since boot. It continues while the machine sleeps, as a lease does.
func clock() instant {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return instant(ts.Nano())
}

// adoptOrphans makes this process the parent of every orphaned descendant, so that none is lost. It returns
// false where /proc does not list the descendants.
func adoptOrphans() bool {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return false // no /proc, or that of another PID namespace, with other numbers
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
}

// childAttr gives the command its own process group, and a signal for the case that this process is killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reapNext waits for the end of a child and reaps it: any child, if this process adopts, else pid, whose
// group it kills. It waits without the lock and reaps with it.
func (s *supervisor) reapNext(pid int) (reaped int, status syscall.WaitStatus, used syscall.Rusage,
	err error) {
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
			return 0, 0, used, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.adopts {
		_ = unix.Kill(-pid, unix.SIGKILL) // before the reaping frees the group's number
	}
	for {
		reaped, err = syscall.Wait4(who, &status, 0, &used)
		if err != syscall.EINTR {
			break
		}
	}
	s.reaped = s.reaped || reaped == pid
	return reaped, status, used, err
}

// memoryFile returns an unnamed file in memory that holds data, or an error where the system has none.
func memoryFile(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return fill(os.NewFile(uintptr(fd), "stdin"), data)
}

// killDescendants sends KILL to every descendant of the process root, except skip, and returns how many there
// are, and of those that it may not signal which one and why. Parents come before their children, since a
// shell whose child is killed continues with its next command.
func killDescendants(root, skip int) (n int, stuck string) {
	return signalDescendants(root, skip, unix.SIGKILL)
}

// unsignallable returns which descendant of the process root may not be signalled, and why; "": none.
func unsignallable(root int) string {
	_, stuck := signalDescendants(root, 0, 0)
	return stuck
}

func signalDescendants(root, skip int, sig syscall.Signal) (n int, stuck string) {
	names, err := readDirNames("/proc")
	if err != nil {
		return 0, ""
	}
	children := map[int][]int{}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != skip {
			if parent, ok := parentOf(pid); ok {
				children[parent] = append(children[parent], pid)
			}
		}
	}
	for parents := []int{root}; len(parents) > 0; parents = parents[1:] {
		for _, pid := range children[parents[0]] {
			if signalChild(pid, parents[0], root, sig) == unix.EPERM && stuck == "" {
				stuck = describe(pid)
			}
			n++
		}
		parents = append(parents, children[parents[0]]...)
	}
	return n, stuck
}

// signalChild sends sig to pid if it is still a child of parent, or has been orphaned and adopted by root. It
// opens a pidfd first, so that the number cannot be reused between the check and the signal.
func signalChild(pid, parent, root int, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	if now, ok := parentOf(pid); !ok || now != parent && now != root {
		return nil
	}
	if err != nil { // an old kernel, or a filter that forbids pidfds
		return unix.Kill(pid, sig)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// describe says which process this is, and whose, for people; "" if it has ended.
func describe(pid int) string {
	number := strconv.Itoa(pid)
	stat, err := os.ReadFile("/proc/" + number + "/stat")
	begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if err != nil || begin < 0 || end < begin {
		if unix.Kill(pid, 0) == unix.ESRCH {
			return ""
		}
		return "pid " + number + " belongs to another user"
	}
	if state := bytes.Fields(stat[end+1:]); len(state) == 0 || string(state[0]) == "Z" {
		return ""
	}
	name := strings.ToValidUTF8(string(stat[begin+1:end]), "?")
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		name = quoted
	}
	return "pid " + number + " (" + name + ") " + whose(number)
}

// whose names the owner of a process, or says that it may not be signalled although it belongs to this user.
func whose(pid string) string {
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	_, after, _ := bytes.Cut(status, []byte("\nUid:"))
	uids := bytes.Fields(after)
	if len(uids) < 4 {
		return "belongs to another user"
	}
	uid := string(uids[0])
	if uid == strconv.Itoa(os.Getuid()) {
		return "may not be signalled"
	}
	if u, err := user.LookupId(uid); err == nil {
		return "belongs to " + u.Username
	}
	return "belongs to user " + uid
}

// parentOf returns the parent of a process.
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
