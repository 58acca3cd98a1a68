//go:build unix

package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// openToOthers returns the files and folders below root that other users may read, write or enter, and the
// names of all others.
func openToOthers(t testing.TB, root string) (open, closed []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if name := strings.TrimPrefix(path, root+"/"); info.Mode().Perm()&0o077 != 0 {
			open = append(open, info.Mode().String()+" "+name)
		} else {
			closed = append(closed, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return open, closed
}

// Every file that the program creates is accessible to its owner only, even if the umask allows more: it
// contains payloads, or a user who can write to it could run jobs.
func TestFileModesOwnerOnly(t *testing.T) {
	t.Parallel()
	s := site{TB: t, dir: t.TempDir()}
	generous := func(words ...string) *exec.Cmd {
		cmd := exec.Command("sh", append([]string{"-c", `umask 0 && exec jobledger "$@"`, "sh"}, words...)...)
		cmd.Dir = s.dir
		return cmd
	}
	run := func(stdin string, words ...string) {
		t.Helper()
		cmd := generous(words...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("jobledger %s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
	run("", "init")
	run(`{"payload":"x"}`+"\n", "enqueue", "-q", "mail", "--jsonl", "-")
	// While another process writes, processes queue for the lock; while the command runs, every file of a live
	// ledger exists.
	s.whileInWriteQueue(generous("enqueue", "-q", "later", "--delay", "1h", "y"))
	w := s.start(generous("work", "-q", "mail", "--", "sh", "-c", "echo out; echo err >&2; "+untilGo))
	s.pids("begun", 1)
	s.eventually("what it says is kept", func() bool {
		files, _ := filepath.Glob(s.path("jobledger.db.logs/*/1.*"))
		return len(files) == 2
	})
	run("", "backup", "backup.db")
	run("", "incident", "--from", "pos:1", "--to", "pos:2", "-o", "incident")
	run("", "replay", "--until", "pos:2", "--into", "replayed.db")
	run(s.run("export")+"\n", "import", "-", "--db", "imported.db")
	run("", "rebuild", "--db", "imported.db")

	made := `begun|backup\.db|incident(/(report\.md|depth\.svg|events\.jsonl|` +
		`attempts\.csv|trace\.json|manifest\.json))?|` +
		`(replayed|imported)\.db|` +
		`jobledger\.db(-wal|-shm|\.bell(/(bell|ended|inbox|gate|lock))?|\.logs(/[0-9A-Z]{26}(/1\.(out|err))?)?)?`
	open, closed := openToOthers(t, s.dir)
	for _, name := range closed {
		if !regexp.MustCompile("^(" + made + ")$").MatchString(name) {
			t.Errorf("a file that this test does not know: %s", name)
		}
	}
	if got, want := len(closed), 23; got != want {
		t.Errorf("%d files and folders, want %d:\n%s", got, want, strings.Join(closed, "\n"))
	}
	// the command's own file, which shows the umask
	if got := strings.Join(open, "\n"); got != "-rw-rw-rw- begun" {
		t.Errorf("open to others:\n%s", got)
	}
	s.touch("go")
	w.signal(syscall.SIGTERM)
	w.wantExit(0)
	s.run("verify")
	run("", "restore", "backup.db", "--force")
	if open, _ = openToOthers(t, s.dir); strings.Join(open, "\n") != "-rw-rw-rw- begun" {
		t.Errorf("open to others after a restore:\n%s", strings.Join(open, "\n"))
	}
	s.run("verify")
}

// whileInWriteQueue runs cmd while another program holds the write lock, which it releases when cmd is in the
// write queue.
func (s site) whileInWriteQueue(cmd *exec.Cmd) {
	s.Helper()
	db, err := sql.Open("sqlite", s.path("jobledger.db"))
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		s.Fatal(err)
	}
	p := s.start(cmd)
	s.eventually("it lines up", func() bool {
		_, err := os.Stat(s.path("jobledger.db.bell/lock"))
		return err == nil
	})
	if _, err := db.Exec("ROLLBACK"); err != nil {
		s.Fatal(err)
	}
	p.wantExit(0)
}

// A file that others may read is detected; otherwise the test above would prove nothing.
func TestFileModesCheckFindsOthers(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"mine": 0o600, "read": 0o640, "written": 0o602} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "entered"), 0o700),
		os.Chmod(filepath.Join(dir, "entered"), 0o711)); err != nil {
		t.Fatal(err)
	}
	open, closed := openToOthers(t, dir)
	if got := fmt.Sprint(open, closed); got != "[drwx--x--x entered -rw-r----- read -rw-----w- written] [mine]" {
		t.Errorf("got %s", got)
	}
}

// Error texts and logs do not contain the payloads, results and tokens of jobs.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const secret = "sesame"
	var said strings.Builder
	fails := func(stdin string, words ...string) {
		t.Helper()
		cmd := s.command(words...)
		cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &said
		if out, err := cmd.Output(); err == nil {
			t.Errorf("jobledger %s: no error, and %q", strings.Join(words, " "), out)
		}
	}
	job := s.enqueue("--key", "k", secret)
	fails("", "enqueue", "-q", "mail", "--key", "k", secret+"2")
	fails(strings.Repeat(secret, 1<<20), "enqueue", "-q", "mail", "-")
	for _, line := range []string{`{"payload":"sesame","x":1}`, `{"payload":"sesame`, `sesame`, `["sesame"]`,
		`{"payload":"sesame","delay":"1"}`} {
		fails(line+"\n", "enqueue", "-q", "mail", "--jsonl", "-")
	}
	fails("", "succeed", job, "--token", secret, "--result", secret)
	fails(secret, "succeed", job, "--token", "01KKQGAZ430000000000000000", "--result", "-")

	claimed := s.run("claim", "-q", "mail", "--json")
	_, token, _ := strings.Cut(claimed, `"lease_token":"`)
	token, _, _ = strings.Cut(token, `"`)
	fails("", "fail", job, "--token", token, "--code", "no good", "--detail", secret)
	fails("", "heartbeat", job, "--token", token, "--progress", "2", "--note", secret)
	s.run("succeed", job, "--token", token, "--result", secret)
	fails("", "succeed", job, "--token", token, "--result", secret+"2")
	fails("", "fail", job, "--token", token, "--detail", secret)
	fails("", "exec", job, "--token", token, "--", "echo", secret)

	history := s.run("export")
	for _, broken := range []string{history[:strings.Index(history, secret)+2],
		strings.Replace(history, secret, "Sesame", 1),
		strings.Replace(history, `"payload":"`, `"payload":0,"x":"`, 1)} {
		fails(broken, "import", "-", "--db", "imported.db")
	}
	fails("", "list", "--db", "postgres://ada:"+secret+"@localhost/jobs")

	// The worker logs the outcome of jobs, and nothing of their content.
	for i := range 4 {
		s.enqueue("--max-attempts", "1", fmt.Sprint(i, secret))
	}
	cmd := s.command("work", "-q", "mail", "--drain", "-j", "2", "--", "sh", "-c",
		`read -r p; case $p in 0*) exit 3 ;; 1*) exit 75 ;; 2*) kill -9 $$ ;; esac`)
	cmd.Env = append(os.Environ(), "API_KEY="+secret)
	w := s.start(cmd)
	w.wantExit(0)
	w.wantSaid("failed job=")
	for _, what := range []string{secret, "Sesame", token} {
		for name, text := range map[string]string{"a command": said.String(), "the worker": w.said.String()} {
			if i := strings.Index(text, what); i >= 0 {
				t.Errorf("%s says %q: …%s…", name, what, text[max(0, i-100):i+len(what)])
			}
		}
	}
	if n := strings.Count(said.String(), "jobledger: "); n != 18 {
		t.Errorf("%d commands said why they failed, want 18:\n%s", n, said.String())
	}
	s.run("verify")
}
