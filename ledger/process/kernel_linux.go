package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Machine names this machine since its last start, with the namespace in which process ids are counted; "" if
// that is unknown.
func Machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}

// Began says when a process began, in text that no other process with this pid has while the machine runs; ""
// if that is unknown, or if it has ended.
func Began(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// field 22 of proc(5), of which two are cut off: the name, which may have spaces, ends with a parenthesis
	const startTime = 19
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= startTime {
		return ""
	}
	return strconv.Itoa(pid) + " " + string(fields[startTime])
}

// exists reports whether there is a process with this pid, including a zombie that was not waited for.
func exists(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
