//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// A sweeper whose archive has no place says so, and takes jobs back all the same.
func TestSweepGoesOnWithoutPlaceForArchive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.env = append(s.env, hasteEnv+"=1", cli.ArchiveEnv+"="+s.path("old"))
	s.ok(os.WriteFile(s.path("old"), []byte("not a folder"), 0o600))
	s.enqueueLines(256) // a block of the hash tree
	s.run("archive", "--policy", "older-than 1s")
	cmd := s.command("sweep", "--every", "100ms", "--grace", "0s")
	s.ok(hasty(cmd))
	sweeper := s.start(cmd)
	s.eventually("the sweeper says that its archive failed", func() bool {
		return strings.Contains(sweeper.said.String(), "archive: ")
	})
	lost := s.run("enqueue", "-q", "other", "y")
	s.run("claim", "-q", "other", "--lease", "1s")
	s.eventually("the job is taken back", func() bool {
		return strings.Contains(s.run("history", lost), "reclaimed")
	})
	sweeper.signal(syscall.SIGTERM)
	sweeper.wantExit(0)
	s.run("verify")
}
