package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// On a terminal, retry asks before it runs a succeeded job again. Only yes means yes.
func TestRetryAsksOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for answer, want := range map[string]string{"y\n": "queued", "Yes\n": "queued", "n\n": "succeeded",
		"\n": "succeeded", "\x04": "succeeded"} {
		job := s.enqueue("--max-attempts", "1", "x")
		s.run("work", "-q", "mail", "--drain", "--", "true")
		said := s.onTerminal(answer, "retry", job)
		if !strings.Contains(said, "has succeeded; run it once more? [y/N]") {
			t.Errorf("%q: not asked: %s", answer, said)
		}
		if got := s.run("list", "--json", "--state", want); !strings.Contains(got, job) {
			t.Errorf("%q: it is not %s; said: %s", answer, want, said)
		}
		s.run("work", "-q", "mail", "--drain", "--", "true")
	}
	s.run("verify")
}

// onTerminal runs the program with a terminal as its three streams, with answer typed in advance. It returns
// what the terminal shows.
func (s site) onTerminal(answer string, words ...string) string {
	s.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		s.Skip(err)
	}
	defer ours.Close()
	s.ok(unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	s.ok(err)
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	s.ok(err)
	cmd := exec.Command("jobledger", words...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.dir, theirs, theirs, theirs
	_, err = ours.WriteString(answer)
	s.ok(err)
	s.ok(cmd.Start())
	_ = theirs.Close()
	var shown bytes.Buffer
	_, _ = shown.ReadFrom(ours) // ends with an error when their last file is closed
	_ = cmd.Wait()
	return shown.String()
}
