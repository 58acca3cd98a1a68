package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// shell compares a job from the command line with an insert by the sqlite3 shell, and both with what bounds a
// program in Go: the same insert by one that does nothing else, and the start of the command.
type shell struct{ command, insert, ledger, raw string }

// newShell builds the command from the repository that the working directory is in.
func newShell(ctx context.Context, root string) (*shell, error) {
	s := &shell{filepath.Join(root, "jobledger"), filepath.Join(root, "insert"), filepath.Join(root, "ledger.db"),
		filepath.Join(root, "raw.db")}
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
	var took [4][]float64
	for range times {
		for i, command := range [][]string{
			{s.command, "enqueue", "--db", s.ledger, "-q", "bench", payload},
			{"sqlite3", s.raw, insert},
			{s.command, "version"},
			{s.insert, s.raw, insert},
		} {
			start := time.Now()
			if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
				return t, fmt.Errorf("%s: %w: %s", command[0], err, out)
			}
			took[i] = append(took[i], time.Since(start).Seconds())
		}
	}
	return shellTimes{median(took[0]), median(took[1]), median(took[2]), median(took[3])}, nil
}
