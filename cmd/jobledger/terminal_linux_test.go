package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jobledger/cmd/jobledger/internal/cli"
)

// onTerminal runs a line in dir on a terminal of 100 columns, and returns what a person sees.
func onTerminal(t *testing.T, dir string, words ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	defer master.Close()
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	check(t, err)
	check(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	check(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}))
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	cmd := exec.CommandContext(t.Context(), "jobledger", words...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, terminal, terminal
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "TERM=xterm", "TZ=UTC",
		"XDG_STATE_HOME="+filepath.Join(dir, "state"))
	check(t, cmd.Start())
	check(t, terminal.Close())
	seen, _ := io.ReadAll(master) // it ends with an error once the other end is closed
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("%q: %v", words, err)
	}
	return strings.ReplaceAll(string(seen), "\r\n", "\n")
}

// On a terminal jobs have short numbers, which every command takes, and the list says what they are. A pipe
// gets the ids, and no payload.
func TestTerminalNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, cli.DefaultDB)
	for _, words := range [][]string{
		{"-q", "mail", "a\x1b[31m\n payload   of words"},
		{"-q", "mail", "--key", "invoice-17", "x"},
		{"-q", "web", "--tag", "title=nightly image", "--key", "k", "x"},
		{"-q", "web", strings.Repeat("long ", 100)},
		{"-q", "web"},
	} {
		checkRun(t, append([]string{"enqueue", "--db", db}, words...)...)
	}
	checkRun(t, "work", "--db", db, "-q", "mail", "--drain", "--", "true")
	list := onTerminal(t, dir, "list")
	for _, want := range []string{
		`(?m)^ *NO +STATE +QUEUE +TOOK +FAILS +ERROR +WHAT +WHEN`,
		`(?m)^ *1 +succeeded +mail +[0-9.]+m?s +0/5 +a \[31m payload of words +`,
		`(?m)^ *2 +succeeded +mail +.* invoice-17 +`,
		`(?m)^ *3 +queued +web +0/5 +nightly image +ready`,
		`(?m)^ *4 +queued +web +0/5 +(long ){8}… +ready`,
		`(?m)^ *5 +queued +web +0/5 +ready`,
	} {
		if !regexp.MustCompile(want).MatchString(list) {
			t.Errorf("no match for %s in\n%s", want, list)
		}
	}
	if said := onTerminal(t, dir, "enqueue", "-q", "web", "x"); !strings.Contains(said, "\njobledger: job ") {
		t.Errorf("enqueue does not say the number:\n%s", said)
	}
	piped := checkRun(t, "list", "--db", db)
	if strings.Contains(piped, "payload") || !strings.HasPrefix(piped, "JOB") {
		t.Errorf("a pipe got\n%s", piped)
	}
	if wide := onTerminal(t, dir, "list", "--wide"); !strings.HasPrefix(wide, "JOB") {
		t.Errorf("--wide shows\n%s", wide)
	}
	own := filepath.Join(dir, "state", "jobledger", "jobs.db")
	check(t, os.MkdirAll(filepath.Dir(own), 0o700))
	checkRun(t, "init", "--db", own)
	elsewhere := t.TempDir()
	check(t, os.Symlink(filepath.Join(dir, "state"), filepath.Join(elsewhere, "state")))
	queues := onTerminal(t, elsewhere, "queues")
	if !strings.Contains(queues, "jobledger: the ledger is "+elsewhere) {
		t.Errorf("a ledger elsewhere is not named:\n%s", queues)
	}
	if queues := onTerminal(t, dir, "queues"); strings.Contains(queues, "the ledger is") {
		t.Errorf("that of the folder is named:\n%s", queues)
	}
	if shown := onTerminal(t, dir, "show", "3"); !regexp.MustCompile(`(?m)^number +3$`).MatchString(shown) {
		t.Errorf("show 3 shows\n%s", shown)
	}
}

// checkRun runs a line that must succeed, without a terminal, and returns what it prints.
func checkRun(t *testing.T, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "jobledger", words...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return string(out)
}
