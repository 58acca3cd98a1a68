package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// shell compares a job from the command line with an insert by the sqlite3 shell.
type shell struct{ command, ledger, raw string }

// newShell builds the command from the repository that the working directory is in.
func newShell(ctx context.Context, root string) (*shell, error) {
	s := &shell{filepath.Join(root, "jobledger"), filepath.Join(root, "ledger.db"), filepath.Join(root, "raw.db")}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.command, "./cmd/jobledger")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	q, err := openRawLedger(ctx, File{Path: s.raw, Sync: "full", New: true})
	if err != nil {
		return nil, err
	}
	return s, q.Close()
}

// compare runs both by turns and returns the median time of each, in seconds.
func (s *shell) compare(ctx context.Context, times int) (ours, theirs float64, err error) {
	payload := string(newPayload(0))
	insert := fmt.Sprintf(`PRAGMA synchronous=FULL; BEGIN IMMEDIATE; INSERT INTO jobs (state, payload)
		VALUES (0, CAST('%s' AS BLOB)); INSERT INTO events (job, kind, at) VALUES (last_insert_rowid(), 0, %d); COMMIT;`,
		payload, time.Now().UnixMicro())
	var took [2][]float64
	for range times {
		for i, command := range [][]string{
			{s.command, "enqueue", "--db", s.ledger, "-q", "bench", payload},
			{"sqlite3", s.raw, insert},
		} {
			start := time.Now()
			if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
				return 0, 0, fmt.Errorf("%s: %w: %s", command[0], err, out)
			}
			took[i] = append(took[i], time.Since(start).Seconds())
		}
	}
	return median(took[0]), median(took[1]), nil
}
