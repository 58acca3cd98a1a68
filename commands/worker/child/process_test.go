//go:build unix

package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/ledger/ledgertest"
)

func TestProcessEnd(t *testing.T) {
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		for script, want := range map[string]string{
			"exit 0":           "exit 0",
			"exit 3":           "exit 3",
			"exit 137":         "exit 137",
			"kill -KILL $$":    "SIGKILL",
			"kill -TERM $$":    "SIGTERM",
			"kill -HUP $$":     "SIGHUP", // no signal may be ignored by a parent
			"kill -INT $$":     "SIGINT",
			"kill -35 $$":      "SIG35",
			"sleep 0 & exit 5": "exit 5",
		} {
			e := run(t, way(shell(script)))
			if got := how(e); got != want || e.Left != 0 {
				t.Errorf("%s: got %q, want %q; left %d", script, got, want, e.Left)
			}
		}
	})
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// Write the files before any other command runs: a fork would inherit the open file and keep it busy.
	cases := map[string]struct {
		spec Spec
		code int
	}{
		"no such name":   {Spec{Path: "jobledger-no-such-command"}, 127},
		"no such file":   {Spec{Path: filepath.Join(dir, "missing")}, 127},
		"no interpreter": {Spec{Path: file("astray", "#!/no/such/interpreter\n", 0o755)}, 127},
		"not executable": {Spec{Path: file("plain", "#!/bin/sh\n", 0o644)}, 126},
		"a directory":    {Spec{Path: dir}, 126},
		"no program":     {Spec{Path: file("text", "hello\n", 0o755)}, 126},
		"no directory":   {Spec{Path: "/bin/sh", Dir: filepath.Join(dir, "missing")}, 126},
		"a NUL byte":     {Spec{Path: "/bin/sh", Args: []string{"a\x00b"}}, 126},
	}
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		for name, tt := range cases {
			tt.spec.Supervisor = self()
			_, err := Start(t.Context(), way(tt.spec))
			if e := (*StartError)(nil); !errors.As(err, &e) || e.Code != tt.code {
				t.Errorf("%s: got %v, want a start error with code %d", name, err, tt.code)
			}
		}
	})
}

func TestStartIsBoundedByContext(t *testing.T) {
	t.Parallel()
	spec := shell("exit 0")
	spec.Supervisor = []string{"/bin/sleep", "1"} // a program that supervises nothing
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	started := time.Now()
	if _, err := Start(ctx, spec); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	if d := time.Since(started); d > killBackstop {
		t.Errorf("it took %v", d)
	}
	spec.Supervisor = []string{"/bin/sh", "-c", "exit 1"}
	if _, err := Start(t.Context(), spec); err == nil {
		t.Error("a supervising parent that ends at once is not an error")
	}
}

func TestSuperviseRefusesStartByHand(t *testing.T) {
	out, err := exec.Command(self()[0], "supervise").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not by hand") {
		t.Errorf("got %v, %s", err, out)
	}
}

func TestProcessInputIsUnchanged(t *testing.T) {
	every := make([]byte, 1<<20)
	for i := range every {
		every[i] = byte(i) ^ byte(i>>8)
	}
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		for _, input := range [][]byte{nil, []byte("\x00a\x00\n\xff"), every} {
			spec := shell("cat")
			spec.Stdin = input
			e := run(t, way(spec))
			wantEnd(t, e, "exit 0")
			if !bytes.Equal(e.Stdout, input) || e.StdoutTruncated {
				t.Errorf("cat gave %d bytes of %d", len(e.Stdout), len(input))
			}
		}
		spec := shell("exit 0") // and does not read
		spec.Stdin = every
		wantEnd(t, run(t, way(spec)), "exit 0")
	})
}

func TestProcessEnvironmentAndArguments(t *testing.T) {
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		spec := Spec{Supervisor: self(), Path: "env", Env: []string{"B=2", "A=1 \xff x", "EMPTY="}}
		if e := run(t, way(spec)); string(e.Stdout) != "B=2\nA=1 \xff x\nEMPTY=\n" {
			t.Errorf("environment: %q", e.Stdout)
		}
		spec.Env = nil
		if e := run(t, way(spec)); len(e.Stdout) != 0 {
			t.Errorf("an empty environment: %q", e.Stdout)
		}
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		spec = shell(`pwd -P; printf '%s|' "$@"`, "a b", "", "-x", "\xfe'$HOME\n")
		spec.Dir = dir
		if e := run(t, way(spec)); string(e.Stdout) != dir+"\na b||-x|\xfe'$HOME\n|" {
			t.Errorf("directory and arguments: %q", e.Stdout)
		}
	})
}

func TestProcessInheritsNothingElse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		script := "cd /proc/$$/fd; echo *; " +
			"echo $(grep -E 'Sig(Blk|Ign)' /proc/$$/status; cut -d' ' -f5 /proc/$$/stat); echo $$"
		plain, err := exec.Command("/bin/sh", "-c", script).Output() // the test run may have files open
		if err != nil {
			t.Fatal(err)
		}
		e := run(t, way(shell(script)))
		files, rest, _ := strings.Cut(string(e.Stdout), "\n")
		if want, _, _ := strings.Cut(string(plain), "\n"); files != want {
			t.Errorf("open files: %s, want %s", files, want)
		}
		f := strings.Fields(rest)
		if len(f) != 6 {
			t.Fatalf("%q", e.Stdout)
		}
		if zero := "0000000000000000"; f[1] != zero || f[3] != zero {
			t.Errorf("signals are blocked or ignored: %q", f[:4])
		}
		if group, pid := f[4], f[5]; group != pid {
			t.Errorf("process %s is in group %s", pid, group)
		}
	})
}

// slow pauses in each Write and counts the bytes.
type slow struct {
	pause time.Duration
	n     int
}

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(s.pause) // a slow reader
	s.n += len(p)
	return len(p), nil
}

func TestStreamSlowReaderGetsAllOutput(t *testing.T) {
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		sink := &slow{pause: 2 * drainGrace}
		spec := shell("head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2")
		spec.Stdout = sink
		e := run(t, way(spec))
		if sink.n != 60000 || e.StdoutSize != 60000 || len(e.StderrTail) != stderrTail {
			t.Errorf("passed on %d, kept %d of stdout, %d of stderr", sink.n, e.StdoutSize, len(e.StderrTail))
		}
	})
}

// Another process holds the pipe open, and the reader is slower than the grace period.
func TestStreamReadsRestOfPipeAfterGrace(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	kept := &head{}
	s := newStream(r, kept, &slow{pause: 2 * drainGrace})
	if _, err := w.Write(make([]byte, 60000)); err != nil {
		t.Fatal(err)
	}
	s.finish()
	if kept.size != 60000 {
		t.Errorf("%d bytes of 60000", kept.size)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStreamSurvivesBrokenReader(t *testing.T) {
	spec := shell("head -c 300000 /dev/zero && exit 9")
	spec.Stdout = broken{}
	e := run(t, spec)
	wantEnd(t, e, "exit 9")
	if e.StdoutSize != 300000 {
		t.Errorf("kept %d bytes", e.StdoutSize)
	}
}

func TestProcessFloodUsesBoundedMemory(t *testing.T) {
	size := ledgertest.Size[int64](64<<20, 256<<20, 1<<30)
	script := fmt.Sprintf("head -c %d /dev/zero & head -c %d /dev/zero >&2; wait; echo last >&2", size/2, size/2)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	e := run(t, shell(script))
	runtime.ReadMemStats(&after)
	wantEnd(t, e, "exit 0")
	if e.StdoutSize != size/2 || len(e.Stdout) != defaultResultLimit || !e.StdoutTruncated {
		t.Errorf("kept %d of %d", len(e.Stdout), e.StdoutSize)
	}
	if len(e.StderrTail) != stderrTail || !bytes.HasSuffix(e.StderrTail, []byte("\x00last\n")) {
		t.Errorf("stderr: %d bytes", len(e.StderrTail))
	}
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 32<<20 {
		t.Errorf("allocated %d bytes", grown)
	}
}

func TestProcessManyAtOnce(t *testing.T) {
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		var out lines
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				spec := shell("cat; echo to all; printf partial; exit $1", strconv.Itoa(i))
				spec.Stdin = fmt.Appendf(nil, "child %d\n", i)
				spec.Stdout = NewPrefixWriter(&out, fmt.Sprintf("[%d] ", i))
				c, err := Start(t.Context(), way(spec))
				if err != nil {
					t.Error(err)
					return
				}
				e := c.Wait()
				wantEnd(t, e, fmt.Sprintf("exit %d", i))
				if want := fmt.Sprintf("child %d\nto all\npartial", i); string(e.Stdout) != want {
					t.Errorf("child %d said %q", i, e.Stdout)
				}
			})
		}
		wg.Wait()
		for i := range 32 {
			for _, line := range []string{fmt.Sprintf("child %d", i), "to all", "partial"} {
				if want := fmt.Sprintf("[%d] %s\n", i, line); strings.Count(out.String(), want) != 1 {
					t.Errorf("missing or duplicate: %q", want)
				}
			}
		}
	})
}

// lines is a buffer that may be written to concurrently, as a file may.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func BenchmarkProcess(b *testing.B) {
	env := []string{"PATH=" + os.Getenv("PATH")}
	b.Run("exec", func(b *testing.B) { // the cost of os/exec alone
		for b.Loop() {
			cmd := exec.Command("/bin/true")
			cmd.Env, cmd.Stdin = env, strings.NewReader("payload")
			if _, err := cmd.CombinedOutput(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, argv := range map[string][]string{"direct": nil, "supervised": self()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				spec := Spec{Supervisor: argv, Path: "/bin/true", Env: env, Stdin: []byte("payload")}
				wantEnd(b, run(b, spec), "exit 0")
			}
		})
	}
}
