package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// shell compares a job from the command line with an insert by the sqlite3 shell, and both with what bounds a
// program in Go: the same insert by one that does nothing else, and the start of the command.
type shell struct{ command, insert, ledger, raw, names string }

// manyLines is how many lines a command is run for.
const manyLines = 300

// newShell builds the command from the repository that the working directory is in.
func newShell(ctx context.Context, root string) (*shell, error) {
	s := &shell{filepath.Join(root, "jobledger"), filepath.Join(root, "insert"), filepath.Join(root, "ledger.db"),
		filepath.Join(root, "raw.db"), filepath.Join(root, "names")}
	if err := os.WriteFile(s.names, []byte(strings.Repeat("x\n", manyLines)), 0o600); err != nil {
		return nil, err
	}
	for _, one := range []struct{ in, to, what string }{
		{filepath.Join("..", ".."), s.command, "./cmd/jobledger"}, {".", s.insert, "./insert"},
	} {
		build := exec.CommandContext(ctx, "go", "build", "-o", one.to, one.what)
		build.Dir = one.in
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	q, err := openRawLedger(ctx, File{Path: s.raw, Sync: "full", New: true})
	if err != nil {
		return nil, err
	}
	return s, q.Close()
}

// shellTimes are the medians of one comparison, in seconds.
type shellTimes struct {
	enqueue, shell float64 // the command, and the insert by the sqlite3 shell
	start, insert  float64 // the command without a ledger, and the same insert by a bare program in Go
}

// compare runs all by turns.
func (s *shell) compare(ctx context.Context, times int) (t shellTimes, err error) {
	payload := string(newPayload(0))
	insert := fmt.Sprintf(`PRAGMA synchronous=FULL; BEGIN IMMEDIATE; INSERT INTO jobs (state, payload)
		VALUES (0, CAST('%s' AS BLOB)); INSERT INTO events (job, kind, at) VALUES (last_insert_rowid(), 0, %d); COMMIT;`,
		payload, time.Now().UnixMicro())
	took, err := s.byTurns(ctx, times, []string{s.command, "enqueue", "--db", s.ledger, "-q", "bench", payload},
		[]string{"sqlite3", s.raw, insert}, []string{s.command, "version"}, []string{s.insert, s.raw, insert})
	if err != nil {
		return t, err
	}
	return shellTimes{took[0], took[1], took[2], took[3]}, nil
}

// compareRun returns how long a command by one line takes, as a share of enqueuing a job and working on it; and
// a command for each line of a file, as a share of GNU parallel. Each has two at a time, and prints in the order
// of the lines.
func (s *shell) compareRun(ctx context.Context, times int) (one, many float64, err error) {
	took, err := s.byTurns(ctx, times, []string{s.command, "run", "--db", s.ledger, "--", "true"},
		[]string{s.command, "enqueue", "--db", s.ledger, "-q", "once", "x"},
		[]string{s.command, "work", "--db", s.ledger, "-q", "once", "--once", "--", "true"})
	if err != nil {
		return 0, 0, err
	}
	one = took[0] / (took[1] + took[2])
	if _, err := exec.LookPath("parallel"); err != nil {
		return one, 0, nil
	}
	took, err = s.byTurns(ctx, max(times/5, 1),
		[]string{s.command, "run", "--db", s.ledger, "-k", "-j", "2", "--lines", s.names, "echo", "{}"},
		[]string{"parallel", "-k", "-j", "2", "-a", s.names, "echo", "{}"})
	if err != nil {
		return 0, 0, err
	}
	return one, took[0] / took[1], nil
}

// byTurns runs the commands by turns, and returns the median of each in seconds.
func (s *shell) byTurns(ctx context.Context, times int, commands ...[]string) (medians []float64, err error) {
	took := make([][]float64, len(commands))
	for range times {
		for i, command := range commands {
			start := time.Now()
			if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s: %w: %s", command[0], err, out)
			}
			took[i] = append(took[i], time.Since(start).Seconds())
		}
	}
	for _, one := range took {
		medians = append(medians, median(one))
	}
	return medians, nil
}
