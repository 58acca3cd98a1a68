package main

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// forgeIndexes renames the job id in every index in dir, with right checksums.
func forgeIndexes(t *testing.T, dir, id string) (forged int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.idx"))
	check(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		check(t, err)
		body := text[:len(text)-sha256.Size]
		at := bytes.Index(body, []byte(id))
		if at < 0 {
			continue
		}
		last := &body[at+len(id)-1]
		*last ^= 1
		sum := sha256.Sum256(body)
		check(t, os.WriteFile(name, append(body, sum[:]...), 0o600))
		forged++
	}
	return forged
}

// A job that left is found by every command, even if the index of the archive does not have it any more;
// archive check says so, and makes the index again.
func TestForgedIndexHidesNoJob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	t.Setenv(cli.ArchiveEnv, dir)
	s := importNight(t)
	s.Now = morning
	var id string // a job that ended early
	check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		f := ledger.Filter{Kinds: []event.Kind{event.KindSucceeded}, Limit: 9}
		for e, err := range tx.Events(t.Context(), f) {
			if err != nil {
				return err
			}
			id = string(e.Job)
		}
		return nil
	}))
	s.leave(dir)
	if code, _, said := s.run(0, "seal", "--init"); code != cli.ExitOK {
		t.Fatal(said)
	}
	lines := [][]string{{"history", id}, {"show", id}, {"attempts", "--job", id}, {"archive", "history", id},
		{"logs", id}, {"why", id}}
	before := make(map[string]string)
	for _, words := range lines {
		code, out, said := s.run(0, words...)
		if code != cli.ExitOK && words[0] != "logs" {
			t.Fatalf("%v: %d %s", words, code, said)
		}
		before[words[0]] = out
	}
	if n := forgeIndexes(t, dir, id); n == 0 {
		t.Fatal("no index has the job")
	}
	for _, words := range lines {
		code, out, said := s.run(0, words...)
		if code == cli.ExitNoJob || words[0] != "logs" && (code != cli.ExitOK || out != before[words[0]]) {
			t.Errorf("%v: %d %s%s", words, code, out, said)
		}
	}
	proof := filepath.Join(t.TempDir(), "proof")
	if code, _, said := s.run(0, "prove", id, "-o", proof); code != cli.ExitOK {
		t.Errorf("a proof: %d %s", code, said)
	}
	if code, _, said := s.run(0, "enqueue", "-q", "mail", "--after", id, "next"); code != cli.ExitOK {
		t.Errorf("a job after it: %d %s", code, said)
	}
	serving := serveStore(t, s.Store, atMorning)
	if answer := serving.asker(t, access.Read)("/jobs/" + id); answer.StatusCode != 200 {
		t.Errorf("over HTTP: %s", answer.Status)
	}
	if code, _, said := s.run(0, "erase", id, "--reason", "asked for"); code == cli.ExitNoJob {
		t.Errorf("erase: %d %s", code, said)
	}
	if code, _, said := s.run(0, "show", "01KKQ629E11H44QX3QSRRZDZZZ"); code != cli.ExitNoJob {
		t.Errorf("a job that there never was: %d %s", code, said)
	}
	code, out, said := s.run(0, "archive", "check")
	if code != cli.ExitDiscrepancy || !strings.Contains(out, ".idx does not match the file") {
		t.Errorf("archive check: %d %s%s", code, out, said)
	}
	if code, out, said := s.run(0, "archive", "check"); code != cli.ExitOK {
		t.Errorf("archive check once more: %d %s%s", code, out, said)
	}
	if n := forgeIndexes(t, dir, id); n == 0 {
		t.Error("the index was not made again")
	}
	commandstest.Verify(t, s.Store)
}
