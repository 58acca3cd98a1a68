//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

// rig is a site whose processes can be killed or stopped at a named failpoint.
type rig struct {
	site
	program string
	dsn     string // of its ledger on a server; "": it is a file
}

// ledgerAt returns the address of the ledger of this name.
func (r rig) ledgerAt(name string) string {
	if r.dsn != "" {
		return r.dsn
	}
	return r.path(name)
}

func newRig(t testing.TB) rig {
	t.Helper()
	if !ledgertest.Long() && !*failpoints {
		t.Skip("the tests of the program with failpoints are run with -long, or with -failpoints")
	}
	if _, err := exec.LookPath("go"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("builds a program with failpoints, and there is no go")
	}
	program, err := armed()
	if err != nil {
		t.Fatal(err)
	}
	return rig{site: site{TB: t, dir: t.TempDir()}, program: program}
}

// invocation is a command line of the program with failpoints, and the environment that sets them.
type invocation struct {
	failpoint string // see package failpoint; "": none
	clock     string // likewise
	words     []string
}

func invoke(words ...string) invocation                   { return invocation{words: words} }
func (i invocation) dyingAt(failpoint string) invocation  { i.failpoint = failpoint; return i }
func (i invocation) ahead(clock time.Duration) invocation { i.clock = clock.String(); return i }
func (i invocation) with(words ...string) invocation {
	i.words = slices.Concat(i.words, words)
	return i
}
func (i invocation) clockFrom(file string) invocation { i.clock = file; return i }
func (i invocation) String() string {
	return strings.Join(i.words, " ") + " at " + i.failpoint
}
func (r rig) cmd(i invocation) *exec.Cmd {
	cmd := exec.Command(r.program, i.words...)
	cmd.Dir = r.dir
	endsWithTest(cmd)
	cmd.Env = append(os.Environ(), "JOBLEDGER_FAILPOINT="+i.failpoint, "JOBLEDGER_CLOCK="+i.clock)
	return cmd
}

// exit is how a process ended.
type exit struct {
	stdout, stderr string
	code           int // -1: ended by a signal
	killed         bool
}

// hangs is how long a process may take. Slow machines need a tenth of it.
const hangs = 3 * time.Minute

// do runs a process until it ends. One that hangs fails the test.
func (r rig) do(i invocation) exit {
	r.Helper()
	began := time.Now()
	got := r.kill(i, hangs)
	if time.Since(began) > hangs {
		r.Errorf("%s: it hung", i)
	}
	return got
}

// kill runs a process and kills it after a delay, unless it has ended by then.
func (r rig) kill(i invocation, after time.Duration) exit {
	r.Helper()
	cmd := r.cmd(i)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, time.Second
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
	_ = cmd.Wait() // the result is in ProcessState
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed := status.Signaled() && status.Signal() == syscall.SIGKILL
	return exit{out.String(), said.String(), cmd.ProcessState.ExitCode(), killed}
}

// must is do with a required exit code.
func (r rig) must(code int, i invocation) string {
	r.Helper()
	got := r.do(i)
	if got.code != code {
		r.Fatalf("%s: exit code %d, want %d\n%s%s", i, got.code, code, got.stdout, got.stderr)
	}
	return strings.TrimSuffix(got.stdout, "\n")
}

// ledger opens the ledger of this name for fn and closes it again, because this process must not hold it open
// while the test reads its files directly.
func (r rig) ledger(name string, fn func(*ledger.Store)) {
	r.Helper()
	store, err := ledger.OpenExisting(context.Background(), r.ledgerAt(name))
	if err != nil {
		r.Fatalf("open %s: %v", name, err)
	}
	fn(store)
	if err := store.Close(); err != nil {
		r.Errorf("close %s: %v", name, err)
	}
}

// history returns the events of a ledger and requires that Verify finds nothing: the database is intact, pos
// and seq have no gaps, no claim overlaps another or ends twice, and the tables equal the fold of the events.
func (r rig) history(name string) (events []event.Event) {
	r.Helper()
	events, findings := r.inspect(name)
	for _, f := range findings {
		r.Errorf("verify %s: %+v", name, f)
	}
	return events
}

func (r rig) inspect(name string) (events []event.Event, findings []audit.Finding) {
	r.Helper()
	r.ledger(name, func(store *ledger.Store) {
		ctx := context.Background()
		err := store.Read(ctx, func(tx *ledger.Tx) error {
			v, err := audit.Verify(ctx, tx, nil)
			findings = v.Findings
			return err
		})
		if err != nil {
			r.Errorf("verify %s: %v", name, err)
		}
		events = r.eventsOf(store)
	})
	return events, findings
}

func (r rig) eventsOf(store *ledger.Store, kinds ...event.Kind) (events []event.Event) {
	r.Helper()
	ctx := context.Background()
	err := store.Read(ctx, func(tx *ledger.Tx) error {
		for e, err := range tx.Events(ctx, ledger.Filter{Kinds: kinds}) {
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		return nil
	})
	if err != nil {
		r.Errorf("events of %s: %v", store.Path(), err)
	}
	return events
}

// count returns the number of events of these kinds.
func (r rig) count(kinds ...event.Kind) (n int) {
	r.Helper()
	r.ledger(db, func(store *ledger.Store) {
		n = len(r.eventsOf(store, kinds...))
	})
	return n
}

func kindsOf(events []event.Event) string {
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Kind().String())
	}
	return strings.Join(kinds, " ")
}

// noProcessLeft waits until no process has its working directory in this site. Without /proc, it returns at
// once.
func (r rig) noProcessLeft() {
	r.Helper()
	var left []string
	// The sleep is the interval of a poll.
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if left = r.processes(); len(left) == 0 {
			return
		}
	}
	r.Errorf("processes are left: %q", left)
}

// processes returns the processes whose working directory is this site, without zombies.
func (r rig) processes() (list []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == r.dir {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			words := string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
			list = append(list, filepath.Base(filepath.Dir(link))+" "+words)
		}
	}
	return list
}

// parsed calls visit with each node of the Go files below folder: of tests, or of all other files.
func parsed(t *testing.T, folder string, tests bool, visit func(path string, n ast.Node)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") ||
			strings.HasSuffix(path, "_test.go") != tests {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			ast.Inspect(file, func(n ast.Node) bool { visit(path, n); return true })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Each failpoint of the code is used by a test. The reverse holds anyway: a test that names a missing one
// fails.
func TestFailpointsAllTested(t *testing.T) {
	inTests := make(map[string]bool)
	parsed(t, ".", true, func(_ string, n ast.Node) {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			name, _, _ := strings.Cut(strings.Trim(literal.Value, "\"`"), ":")
			name, _, _ = strings.Cut(name, "=")
			inTests[name] = true
		}
	})
	type place struct {
		name     string
		postgres bool // each engine has its own failpoints
	}
	places := make(map[place]int)
	parsed(t, "../..", false, func(path string, n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Hit" && fmt.Sprint(f.X) == "failpoint" {
			places[place{strings.Trim(call.Args[0].(*ast.BasicLit).Value, "\""),
				filepath.Base(filepath.Dir(path)) == "postgres"}]++
		}
	})
	if len(places) < 20 {
		t.Errorf("only these were found: %v", places)
	}
	for p, n := range places {
		if n != 1 {
			t.Errorf("failpoint %q stands at %d places", p.name, n)
		}
		if !inTests[p.name] {
			t.Errorf("no test names failpoint %q", p.name)
		}
	}
}

// A release build has no failpoints: it does not even contain the names of the variables.
func TestFailpointsAbsentFromRelease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cmd := s.command("enqueue", "-q", "mail", "x")
	cmd.Env = append(os.Environ(), "JOBLEDGER_FAILPOINT=begin", "JOBLEDGER_CLOCK=nonsense")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	r := newRig(t)
	if got := r.do(invoke("enqueue", "-q", "mail", "x").dyingAt("begin")); !got.killed {
		t.Errorf("with failpoints it goes on: %+v", got)
	}
}
