//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// evidenceSite is a sealed ledger of some 280 events that this host has worked on, a copy of it from before
// that (old.db), a checkpoint kept elsewhere (kept) that is signed (jobs.key), and what was done to its job.
func evidenceSite(t testing.TB) (s site, job string) {
	t.Helper()
	s = site{TB: t, dir: t.TempDir()}
	s.env = []string{"XDG_STATE_HOME=" + s.path("state")}
	s.run("seal", "keygen", "jobs.example.com", "--out", "jobs.key")
	job = s.enqueue("--key", "k1", "secret")
	s.run("backup", "unsealed.db")
	s.run("seal", "--init", "--origin", "jobs.example.com", "--key", "jobs.key")
	s.ok(os.WriteFile(s.path("lines"), bytes.Repeat([]byte(`{"queue":"bulk"}`+"\n"), 270), 0o600))
	s.run("enqueue", "--jsonl", "lines")
	s.run("backup", "old.db")
	s.run("work", "-q", "mail", "--drain", "--no-capture", "--", "true")
	s.run("pause", "-q", "mail", "--reason", "end of day")
	s.run("checkpoint", "--key", "jobs.key", "--to", "kept")
	s.run("resume", "-q", "mail")
	return s, job
}

// copied is s with a copy of its folder, in which the ledger has no sidecar files.
func (s site) copied(t testing.TB) site {
	t.Helper()
	to := site{TB: t, dir: t.TempDir()}
	to.ok(os.CopyFS(to.path("all"), os.DirFS(s.dir)))
	to.dir = to.path("all")
	to.ok(os.Chmod(to.path("jobs.key"), 0o600))
	to.env = []string{"XDG_STATE_HOME=" + to.path("state")}
	return to
}

// unguarded runs statements as a user with a SQLite shell can, who first removes the guards and then puts
// them back.
func (s site) unguarded(statements ...string) {
	s.Helper()
	file, err := sql.Open("sqlite", s.path(db))
	s.ok(err)
	defer file.Close()
	rows, err := file.Query(`SELECT name, sql FROM sqlite_master WHERE type = 'trigger'`)
	s.ok(err)
	var before, after []string
	for rows.Next() {
		var name, text string
		s.ok(rows.Scan(&name, &text))
		before, after = append(before, "DROP TRIGGER "+name), append(after, text)
	}
	s.ok(rows.Err())
	for _, statement := range append(append(before, statements...), after...) {
		_, err := file.Exec(statement)
		s.ok(err)
	}
}

// recompute makes all hashes again, as the attacker who has edited the events can.
func (s site) recompute() {
	s.Helper()
	s.unguarded(`DELETE FROM blocks`, `DELETE FROM seals`)
	s.run("seal")
}

// reimport replaces the ledger by one with the exported lines as edit returns them, which has right hashes.
func (s site) reimport(edit func(lines []map[string]any) []map[string]any) {
	s.Helper()
	var lines []map[string]any
	for line := range strings.Lines(s.run("export")) {
		var object map[string]any
		s.ok(json.Unmarshal([]byte(line), &object))
		lines = append(lines, object)
	}
	var out bytes.Buffer
	for i, object := range edit(lines) {
		object["pos"] = i + 1
		s.ok(json.NewEncoder(&out).Encode(object))
	}
	s.ok(os.WriteFile(s.path("forged.jsonl"), out.Bytes(), 0o600))
	s.run("import", "forged.jsonl", "--db", "forged.db")
	s.replace("forged.db")
	s.run("seal")
}

// replace puts another file in the ledger's place.
func (s site) replace(name string) {
	s.Helper()
	for _, suffix := range []string{"-wal", "-shm"} {
		_ = os.Remove(s.path(db + suffix))
	}
	s.ok(os.Rename(s.path(name), s.path(db)))
}

// wantExit checks how a command ends, and that it says something that matches.
func (s site) wantExit(code int, says string, words ...string) {
	s.Helper()
	got := s.ran(words...)
	if said := got.stdout + got.stderr; got.code != code || !regexp.MustCompile(says).MatchString(said) {
		s.Errorf("jobledger %s: exit %d, want %d and %q\n%s", strings.Join(words, " "), got.code, code, says, said)
	}
}

var (
	againstKept = []string{"verify", "--against", "kept"}
	workNone    = []string{"work", "-q", "none", "--drain", "--", "true"}
	workAgain   = []string{"work", "-q", "mail", "--drain", "--", "touch", "ran"}
)

const sawMore = `this host saw jobs\.example\.com with \d+ events`

// TestAttackEvidence does what an attacker can who may write the ledger's file, and checks what each of the
// checks says, as the table in docs/security.md has it.
func TestAttackEvidence(t *testing.T) {
	base, job := evidenceSite(t)
	base.wantExit(cli.ExitOK, `checkpoint: it holds, of \d+ events`, againstKept...)
	attacks := map[string]func(s site){
		"edit of a sealed event": func(s site) {
			s.unguarded(`UPDATE events SET data = json_set(data, '$.origin', 'another') WHERE kind = 20`)
			s.wantExit(8, `V25 .*the events 1 to 256 are not those`, "verify")
			s.wantExit(8, `V25 (?s:.*)C01 .*has never had that name`,
				againstKept...)
			if got := s.ran(againstKept...); strings.Contains(got.stdout, "it holds") {
				t.Errorf("the blocks were taken for the events: %s", got.stdout)
			}
		},
		"edit hidden by a block of no events": func(s site) {
			s.unguarded(`DELETE FROM seals`,
				`UPDATE events SET data = json_set(data, '$.reason', 'nothing') WHERE kind = 20`,
				`INSERT INTO blocks VALUES (1 << 55, randomblob(32))`)
			s.wantExit(8, `V25 .*the events 1 to 256 are not those`, "verify")
			s.wantExit(8, `V25 (?s:.*)C01 .*its root is .*the first difference is among the events 1 to \d+`,
				againstKept...)
			s.wantExit(1, `the hash tree has \d+ blocks`, "seal")
			s.wantExit(1, `the hash tree has \d+ blocks`, "checkpoint")
		},
		"seal of events that were never there": func(s site) {
			s.unguarded(`INSERT INTO seals SELECT n + 1, 1 << 40, at, root, NULL FROM seals ORDER BY n DESC LIMIT 1`)
			s.wantExit(8, `V26 .* is of 1099511627776 events`, "verify")
			s.wantExit(1, `is of 1099511627776 events`, "seal")
			s.wantExit(1, `is of 1099511627776 events`, "checkpoint", "--to", "forged")
		},
		"edit with all hashes computed again": func(s site) {
			s.unguarded(`UPDATE events SET data = json_set(data, '$.reason', 'nothing') WHERE kind = 13`)
			s.recompute()
			s.run("rebuild")
			s.wantExit(0, `^ok: `, "verify")
			s.wantExit(8, `C01 .*its root is .*the first difference is among the events 1 to \d+`, againstKept...)
		},
		"edit signed again with the stolen key": func(s site) {
			s.unguarded(`UPDATE events SET data = json_set(data, '$.reason', 'nothing') WHERE kind = 13`)
			s.recompute()
			s.run("rebuild")
			s.run("checkpoint", "--key", "jobs.key", "--to", "forged")
			public := s.key()
			s.wantExit(0, `^ok: `, "verify", "--against", "forged", "--key", public)
			s.wantExit(8, `C01 .*its root is `, "verify", "--against", "kept", "--key", public)
		},
		"job deleted and the rest renumbered": func(s site) {
			s.reimport(func(lines []map[string]any) (left []map[string]any) {
				for _, line := range lines {
					if line["job"] != job {
						left = append(left, line)
					}
				}
				return left
			})
			s.wantExit(0, `^ok: `, "verify")
			s.wantExit(8, `C01 `, againstKept...)
			s.wantExit(8, sawMore, workAgain...)
		},
		"events inserted with earlier times": func(s site) {
			s.reimport(func(lines []map[string]any) []map[string]any {
				var pause map[string]any
				for _, line := range lines {
					if line["kind"] == "queue_paused" {
						text, _ := json.Marshal(line)
						s.ok(json.Unmarshal(text, &pause))
					}
				}
				pause["at"], pause["data"] = lines[1]["at"], map[string]any{"queue": "bulk", "reason": "end of day"}
				return append(lines[:2:2], append([]map[string]any{pause}, lines[2:]...)...)
			})
			s.wantExit(0, `^ok: `, "verify")
			s.wantExit(8, `C01 `, againstKept...)
		},
		"sealed tail cut off": func(s site) {
			s.unguarded(`DELETE FROM events WHERE kind IN (13, 14)`)
			s.run("rebuild")
			s.wantExit(8, `V2[56] `, "verify")
			s.wantExit(8, `C01 `, againstKept...)
		},
		"tail cut off behind the last checkpoint": func(s site) {
			s.unguarded(`DELETE FROM events WHERE pos = (SELECT max(pos) FROM events)`,
				`UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'events'`,
				`UPDATE queues SET paused = 1, reason = 'end of day', since = (SELECT at FROM events WHERE kind = 13)`)
			s.wantExit(0, `^ok: `, "verify") // nothing shows it
			s.wantExit(0, `it holds`, againstKept...)
		},
		"yesterday's file copied back": func(s site) {
			s.replace("old.db")
			s.wantExit(0, `^ok: `, "verify")
			s.wantExit(8, sawMore+` .*(?s:.*)the ledger is jobs\.example\.com with \d+ events`, workAgain...)
			s.wantExit(8,
				`C01 .*the ledger has only 272; the first difference is among the events 1 to 273`,
				againstKept...)
		},
		"copy from before sealing put back": func(s site) {
			s.run(workNone...)
			s.replace("unsealed.db")
			s.wantExit(0,
				`the ledger here is not sealed, but when this host saw it last it was, as jobs\.example\.com`,
				workNone...)
			s.wantExit(0, `^jobledger: queue none has never had a job\njobledger: worker`, workNone...)
			s.wantExit(8, `C01 .*has never had that name`, againstKept...)
		},
		"older copy under another name": func(s site) {
			s.run(workNone...)
			s.replace("unsealed.db")
			s.run("seal", "--init", "--origin", "jobs.example.org")
			s.wantExit(3, `the ledger here is jobs\.example\.org, but .* it was jobs\.example\.com`, "witness")
			s.wantExit(0,
				`the ledger here is jobs\.example\.org, but when this host saw it last it was jobs\.example\.com`,
				workNone...)
			s.wantExit(8, `C01 .*has never had that name`, againstKept...)
		},
		"copy put back after a restore that is known": func(s site) {
			s.run("enqueue", "--jsonl", "lines")
			s.run(workAgain...)
			s.run("restore", "old.db", "--force")
			s.run("backup", "later.db")
			s.wantExit(0, `event 273 explains it`, workAgain...)
			s.replace("later.db")
			s.ok(os.Remove(s.path("ran")))
			s.wantExit(8, sawMore, workAgain...)
		},
		"another future of an old copy": func(s site) {
			s.replace("old.db")
			s.run("enqueue", "--jsonl", "lines")
			s.wantExit(0, `^ok: `, "verify")
			s.wantExit(8, `that of the ledger's first \d+ events is`, workAgain...)
			s.wantExit(8, `C01 .*its root is `, againstKept...)
		},
		"edit of the tables only": func(s site) {
			s.unguarded(`UPDATE jobs SET error_code = 'x' WHERE n = 1`)
			s.wantExit(8, `V08 .*error_code`, "verify")
		},
		"file of archived events edited, dropped or exchanged": func(s site) {
			first, second := s.archived()
			was, err := os.ReadFile(first)
			s.ok(err)
			s.garbleAt(first, int64(len(was)/2))
			s.wantExit(8, ` damaged `, "archive", "check")
			other, err := os.ReadFile(second)
			s.ok(err)
			s.ok(os.WriteFile(first, other, 0o600))
			s.wantExit(8, ` damaged `, "archive", "check")
			s.ok(os.Remove(first))
			s.wantExit(3, `missing`, "archive", "check")
		},
		"archive as a cover for an edit": func(s site) {
			s.run("seal")
			s.unguarded(`UPDATE events SET data = json_set(data, '$.origin', 'another') WHERE kind = 20`)
			s.wantExit(8, `block 0`, "archive", "close", "--older-than", "0s")
			s.wantExit(8, `V25 `, "verify")
		},
		"event dropped that an archive carries forward": func(s site) {
			_, second := s.archived()
			s.dropFirstLine(second)
			s.wantExit(8, `event \d+ is the first of the job|carried`, "archive", "check")
		},
		"payload exchanged": func(s site) {
			s.unguarded(`UPDATE bodies SET body = x'7075626c6963' WHERE pos = 1`)
			s.wantExit(8, `V07 `, "verify")
		},
		"payload removed without an event": func(s site) {
			s.unguarded(`DELETE FROM bodies WHERE pos = 1`)
			s.wantExit(8, `V07 `, "verify")
		},
		"lie when it was written": func(s site) { // nothing finds it
			s.run("cancel", s.enqueue("another"), "--reason", "it was sent already")
			s.wantExit(0, `^ok: `, "verify")
			s.wantExit(0, `it holds`, againstKept...)
			s.wantExit(0, ``, workAgain...)
		},
		"key and all places in the attacker's power": func(s site) { // nothing finds it
			s.unguarded(`UPDATE events SET data = json_set(data, '$.reason', 'nothing') WHERE kind = 13`)
			s.recompute()
			s.run("rebuild")
			s.ok(os.RemoveAll(s.path("kept")))
			s.ok(os.RemoveAll(s.path("state")))
			s.run("checkpoint", "--key", "jobs.key", "--to", "kept")
			s.wantExit(0, `it holds`, againstKept...)
			s.wantExit(0, ``, workAgain...)
		},
	}
	for _, name := range ledgertest.Sample(slices.Sorted(maps.Keys(attacks)), 3) {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := base.copied(t)
			attacks[name](s)
			if _, err := os.Stat(s.path("ran")); err == nil && strings.Contains(name, "copy") {
				t.Error("a job was claimed")
			}
		})
	}
}

// archived archives two segments, of which the second carries events forward, and returns their files.
func (s site) archived() (first, second string) {
	s.Helper()
	s.run("archive", "close", "--older-than", "0s")
	s.run("enqueue", "--jsonl", "lines")
	s.run("archive", "close", "--older-than", "0s")
	names, err := filepath.Glob(s.path(db + ".archive/*.jsonl.gz"))
	s.ok(err)
	if len(names) != 2 {
		s.Fatalf("archived as %q", names)
	}
	s.wantExit(0, `present`, "archive", "check")
	return names[0], names[1]
}

// dropFirstLine takes the first event out of a file of archived events, and makes what the ledger says of the
// file right again.
func (s site) dropFirstLine(name string) {
	s.Helper()
	f, err := os.Open(name)
	s.ok(err)
	z, err := gzip.NewReader(f)
	s.ok(err)
	text, err := io.ReadAll(z)
	s.ok(errors.Join(err, f.Close()))
	lines := strings.SplitAfter(string(text), "\n")
	first := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, `{"pos":`) })
	if first < 0 || strings.HasPrefix(lines[first], `{"pos":257,`) {
		s.Fatalf("%s carries no event forward: %.200s", name, text)
	}
	lines = slices.Delete(lines, first, first+1)
	var out bytes.Buffer
	block := len(lines) - 1 - 256 // after the last line feed is nothing
	for _, member := range [][]string{lines[:block], lines[block:]} {
		w := gzip.NewWriter(&out)
		_, err = io.WriteString(w, strings.Join(member, ""))
		s.ok(errors.Join(err, w.Close()))
	}
	s.ok(os.WriteFile(name, out.Bytes(), 0o600))
	s.unguarded(fmt.Sprintf(`UPDATE events SET data = json_set(data, '$.sha256', '%x', '$.bytes', %d)
		WHERE kind = 21 AND data ->> 'lo' = 256`, sha256.Sum256(out.Bytes()), out.Len()))
}

// key returns the public key of jobs.key.
func (s site) key() string {
	s.Helper()
	var line struct{ Data struct{ Key string } }
	s.ok(json.Unmarshal([]byte(s.run("events", "--kind", "sealing", "--json")), &line))
	return line.Data.Key
}

// A restore is known from its event: a worker says so once, and goes on.
func TestWitnessKnowsARestore(t *testing.T) {
	t.Parallel()
	s, _ := evidenceSite(t)
	s.run("restore", "old.db", "--force")
	s.wantExit(0, `the ledger is another than this host saw: .*event \d+ explains it: .* restored `,
		workAgain...)
	got := s.ran(workAgain...)
	if got.code != 0 || strings.Contains(got.stderr, "another") {
		t.Errorf("the second time: exit %d, %s", got.code, got.stderr)
	}
	s.wantExit(8, `C01 .*event \d+ explains it: .* restored .* over a ledger of \d+ events`, againstKept...)
	s.wantExit(0, `^ok: `, "verify")
}

// TestDocsVerifierOfProofs runs the script in docs/security.md, which shares no code with this program.
func TestDocsVerifierOfProofs(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; CI installs it")
	}
	_, script, _ := strings.Cut(readPage(t, "docs/security.md"), "```python\n")
	script, _, _ = strings.Cut(script, "```")
	if n := strings.Count(script, "\n"); n == 0 || n > 25 {
		t.Fatalf("the script has %d lines, want up to 25", n)
	}
	s, job := evidenceSite(t)
	s.ok(os.WriteFile(s.path("verify_proof.py"), []byte(script), 0o600))
	check := func(proof, kept string) (string, error) {
		c := exec.Command(python, "verify_proof.py", proof, kept)
		c.Dir = s.dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for i, what := range []string{job, "pos:1", "pos:2", "pos:255", "pos:256", "pos:257", "pos:272"} {
		name := fmt.Sprintf("%d.proof", i)
		s.run("prove", what, "-o", name)
		out, err := check(name, "kept")
		if err != nil || i == 0 && strings.Count(out, "\n") < 3 || !strings.Contains(out, " cli:") {
			t.Errorf("%s: %v, %s", what, err, out)
		}
	}
	whole, err := os.ReadFile(s.path("0.proof"))
	s.ok(err)
	parts := strings.Split(string(whole), "\n\n") // one for each event, and the checkpoint
	another, err := os.ReadFile(s.path("6.proof"))
	s.ok(err)
	other, _, _ := strings.Cut(string(another), "\n\n") // the first event of another job
	for name, text := range map[string]string{
		"an edited event":       strings.Replace(string(whole), "worker:", "Worker:", 1),
		"another place":         strings.Replace(string(whole), "\nindex 0\n", "\nindex 1\n", 1),
		"another job's enqueue": strings.Join(append([]string{other}, parts[1:]...), "\n\n"),
		"without its claim":     strings.Join(append([]string{parts[0]}, parts[2:]...), "\n\n"),
		"another checkpoint":    strings.Replace(string(whole), "\njobs.example.com\n", "\njobs.example.org\n", 1),
	} {
		if text == string(whole) {
			t.Fatalf("%s: nothing was changed", name)
		}
		s.ok(os.WriteFile(s.path("bad.proof"), []byte(text), 0o600))
		if out, err := check("bad.proof", "kept"); err == nil {
			t.Errorf("%s: accepted: %s", name, out)
		}
		s.wantExit(8, `does not hold`, "verify", "--proof", "bad.proof", "--checkpoint", "kept")
	}
	if out, err := check("0.proof", filepath.Join(s.dir, "verify_proof.py")); err == nil {
		t.Errorf("a checkpoint that was not kept: accepted: %s", out)
	}
}
