//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"context"
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
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection"
	"jobledger/projection/audit"
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

// recompute makes all hashes again, as the attacker who has edited the events can, and seal 1 too.
func (s site) recompute() {
	s.Helper()
	s.unguarded(`DELETE FROM blocks`, `DELETE FROM seals`)
	s.withService(0, func(ctx context.Context, service *commands.Service) {
		s.ok(service.Store.Write(ctx, func(tx *ledger.Tx) error {
			sealing, err := projection.SealingOf(ctx, tx)
			for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindSealing}}) {
				s.ok(err)
				sealing.Pos = min(sealing.Pos, e.Pos)
			}
			s.ok(err)
			t, err := tree.New(ctx, tx, nil)
			s.ok(err)
			root, err := t.Root(ctx, sealing.Pos)
			s.ok(err)
			_, err = tree.AppendSeals(ctx, tx, tree.Seal{Size: sealing.Pos, Root: root})
			return err
		}))
	})
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
	ledgertest.Slow(t)
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
			s.unguarded(`INSERT INTO seals SELECT max(n) + 1, 1 << 40, at, root, NULL, NULL FROM seals`)
			s.wantExit(8, `V26 .* is of 1099511627776 events`, "verify")
			s.wantExit(1, `is of 1099511627776 events`, "seal")
			s.wantExit(1, `is of 1099511627776 events`, "checkpoint", "--to", "forged")
		},
		"seals deleted": func(s site) {
			s.unguarded(`DELETE FROM seals`)
			s.wantExit(8, `V33 .*seal 1, of \d+ events, was recorded with event \d+, and is not there`, "verify")
			s.run("seal")
			s.wantExit(8, `V33 `, "verify", "--since", "270")
			s.wantExit(8, `no record of handing out 1 of these checkpoints`, againstKept...)
			s.wantExit(0, `1 checkpoint taken, 0 already there`, "seal", "import", "kept")
			s.wantExit(8, `V33 `, againstKept...)
		},
		"seals deleted but the first": func(s site) {
			s.unguarded(`DELETE FROM seals WHERE n > 1`)
			s.wantExit(0, `^ok: `, "verify") // nothing shows it
			s.wantExit(0, `no record of handing out 1 of these checkpoints`, againstKept...)
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
			s.wantExit(8,
				`the ledger here is not sealed, but when this host saw it last it was, as jobs\.example\.com`,
				workAgain...)
			s.wantExit(8, `C01 .*has never had that name`, againstKept...)
		},
		"older copy under another name": func(s site) {
			s.run(workNone...)
			s.replace("unsealed.db")
			s.run("seal", "--init", "--origin", "jobs.example.org")
			s.wantExit(8, `the ledger here is jobs\.example\.org, but .* it was jobs\.example\.com`, "witness")
			s.wantExit(8,
				`the ledger here is jobs\.example\.org, but when this host saw it last it was jobs\.example\.com`,
				workAgain...)
			s.wantExit(8, `C01 .*has never had that name`, againstKept...)
		},
		"copy put back after a restore that is known": func(s site) {
			s.run("enqueue", "--jsonl", "lines")
			s.run(workAgain...)
			s.run("restore", "old.db", "--force")
			s.run("backup", "later.db")
			s.wantExit(0, `event 273 explains it`, workAgain...)
			s.wantExit(0, `not the one that this host saw: .*event 273 explains it`, workNone...) // at each start
			s.wantExit(0, `Z restored: .*; this host had seen jobs\.example\.com \d+ `, "witness")
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

// A restore is known from its event: a worker says so at each start until that is accepted, and goes on.
func TestWitnessKnowsARestore(t *testing.T) {
	t.Parallel()
	s, _ := evidenceSite(t)
	s.run("restore", "old.db", "--force")
	for range 2 {
		s.wantExit(0, `the ledger is not the one that this host saw: .*event \d+ explains it: .* restored `,
			workAgain...)
	}
	s.run("witness", "--accept", "--reason", "the disk was lost")
	got := s.ran(workAgain...)
	if got.code != 0 || strings.Contains(got.stderr, "another") {
		t.Errorf("after it was accepted: exit %d, %s", got.code, got.stderr)
	}
	s.wantExit(8, `C01 .*event \d+ explains it: .* restored .* over a ledger of \d+ events`, againstKept...)
	s.wantExit(0, `^ok: `, "verify")
}

// forgedProofs are texts of a proof of a whole job, of one event and of consistency in which something was
// changed. other is a proof of a ledger that an attacker made, with the same name, and tie its consistency.
func forgedProofs(whole, single, consistency, other, tie string) map[string]string {
	entries := strings.SplitAfter(whole, "\n\n") // the last ones are the checkpoint
	n := strings.Count(whole, "\nindex ")
	head, events, checkpoint := "jobledger-proof/v1\n", slices.Clone(entries[:n]), strings.Join(entries[n:], "")
	events[0] = strings.TrimPrefix(events[0], head)
	with := func(list ...string) string { return head + strings.Join(list, "") + checkpoint }
	lines := strings.Split(strings.TrimSuffix(events[1], "\n\n"), "\n") // leaf, index, hashes
	second := func(edit func(lines []string) []string) string {
		edited := strings.Join(edit(slices.Clone(lines)), "\n") + "\n\n"
		return with(append([]string{events[0], edited}, events[2:]...)...)
	}
	strangers := strings.TrimPrefix(single[:strings.Index(single, "\n\n")+2], head)
	others := strings.Split(strings.TrimSpace(events[2]), "\n")[2:]
	named := strings.SplitAfterN(checkpoint, "\n", 4)
	size, root := named[1], named[2]
	of := func(parts ...string) string { return head + strings.Join(events, "") + strings.Join(parts, "") }
	path, texts, _ := strings.Cut(consistency, "\n\n")
	hashes := strings.Split(path, "\n")[1:]
	older, newer, _ := strings.Cut(texts, "\n\n")
	older += "\n\n"
	tied := func(hashes []string, texts ...string) string {
		return "jobledger-consistency/v1\n" + strings.Join(hashes, "\n") + "\n\n" + strings.Join(texts, "")
	}
	flip := func(text string, at int) string {
		return text[:at] + string(map[bool]byte{true: 'B', false: 'A'}[text[at] == 'A']) + text[at+1:]
	}
	loose := func(hash string) string { // the same 32 bytes, for one who reads base64 carelessly
		return hash[:42] + string(hash[42]+1) + "="
	}
	return map[string]string{
		"edited actor":              strings.Replace(whole, "worker:", "Worker:", 1),
		"edited kind":               strings.Replace(whole, `"kind":"succeeded"`, `"kind":"cancelled"`, 1),
		"edited state":              strings.Replace(whole, `"to_state":"succeeded"`, `"to_state":"cancelled"`, 1),
		"edited time":               strings.Replace(whole, `"at":"2`, `"at":"3`, 1),
		"a space more":              strings.Replace(whole, `{"pos":`, `{ "pos":`, 1),
		"a space behind":            strings.Replace(whole, "}\nindex", "} \nindex", 1),
		"another index":             strings.Replace(whole, "\nindex 0\n", "\nindex 1\n", 1),
		"index with a sign":         strings.Replace(whole, "\nindex 0\n", "\nindex +0\n", 1),
		"index with a zero":         strings.Replace(whole, "\nindex 0\n", "\nindex 00\n", 1),
		"negative index":            strings.Replace(whole, "\nindex 0\n", "\nindex -1\n", 1),
		"index behind the end":      strings.Replace(whole, "\nindex 0\n", "\nindex 99999999\n", 1),
		"index of no int64":         strings.Replace(whole, "\nindex 0\n", "\nindex 99999999999999999999\n", 1),
		"no index":                  strings.Replace(whole, "\nindex 0\n", "\n", 1),
		"another job's enqueue":     with(append([]string{strangers}, events[1:]...)...),
		"without the first":         with(events[1:]...),
		"without the second":        with(append([]string{events[0]}, events[2:]...)...),
		"swapped":                   with(append([]string{events[1], events[0]}, events[2:]...)...),
		"the first twice":           with(append([]string{events[0]}, events...)...),
		"the last twice":            with(append(slices.Clone(events), events[n-1])...),
		"first hash missing":        second(func(l []string) []string { return slices.Delete(l, 2, 3) }),
		"last hash missing":         second(func(l []string) []string { return l[:len(l)-1] }),
		"a hash more":               second(func(l []string) []string { return append(l, l[2]) }),
		"hash changed":              second(func(l []string) []string { l[3] = flip(l[3], 7); return l }),
		"hashes swapped":            second(func(l []string) []string { l[2], l[3] = l[3], l[2]; return l }),
		"hash in loose base64":      second(func(l []string) []string { l[2] = loose(l[2]); return l }),
		"hash cut":                  second(func(l []string) []string { l[2] = l[2][:40]; return l }),
		"hashes of another event":   second(func(l []string) []string { return append(l[:2], others...) }),
		"empty line within":         strings.Replace(whole, "\nindex 0\n", "\n\nindex 0\n", 1),
		"no events":                 head + checkpoint,
		"only the first line":       head,
		"nothing":                   "",
		"no first line":             strings.TrimPrefix(whole, head),
		"another form":              strings.Replace(whole, "/v1\n", "/v2\n", 1),
		"cut in an event":           whole[:len(whole)/3],
		"cut before the checkpoint": head + strings.Join(events, ""),
		"cut in the checkpoint":     whole[:len(head)+len(strings.Join(events, ""))+20],
		"another name":              of("jobs.example.org\n", strings.Join(named[1:], "")),
		"another size":              of(named[0], "1"+size, strings.Join(named[2:], "")),
		"size with a zero":          of(named[0], "0"+size, strings.Join(named[2:], "")),
		"another root":              of(named[0], size, flip(root, 3), named[3]),
		"root in loose base64":      of(named[0], size, loose(root[:44])+"\n", named[3]),
		"a line more":               of(named[0], size, root, "more\n", named[3]),
		"text behind":               whole + "more\n",
		"an event behind":           whole + events[0],
		"signature of nothing":      whole + "— jobs.example.com\n",
		"signature of no name":      whole + "—  AAAA\n",
		"signature in loose base64": whole + "— jobs.example.com AAB=\n",
		"signature that is cut":     whole + "— jobs.example.com AAAA",
		`lines with \r\n`:           strings.ReplaceAll(whole, "\n", "\r\n"),
		"another ledger":            other,
		"another ledger's path":     other[:strings.LastIndex(other, "\njobs.example.com\n")+1] + checkpoint,
		"another ledger's history":  tie,
		"tie: hash changed":         tied(append([]string{flip(hashes[0], 9)}, hashes[1:]...), texts),
		"tie: hash missing":         tied(hashes[1:], texts),
		"tie: last hash missing":    tied(hashes[:len(hashes)-1], texts),
		"tie: a hash more":          tied(append(slices.Clone(hashes), hashes[0]), texts),
		"tie: hash in loose base64": tied(append([]string{loose(hashes[0])}, hashes[1:]...), texts),
		"tie: no hashes":            tied(nil, texts),
		"tie: swapped":              tied(hashes, newer, older),
		"tie: the older twice":      tied(hashes, older, older),
		"tie: the newer twice":      tied(hashes, newer, newer),
		"tie: older size":           tied(hashes, strings.Replace(older, "\n", "\n1", 1), newer),
		"tie: newer size":           tied(hashes, older, strings.Replace(newer, "\n", "\n1", 1)),
		"tie: older root":           tied(hashes, flip(older, len(older)-10), newer),
		"tie: newer root":           tied(hashes, older, flip(newer, strings.Index(newer, "=")-5)),
		"tie: another name":         tied(hashes, older, strings.Replace(newer, ".com", ".org", 1)),
		"tie: one checkpoint":       tied(hashes, older),
		"tie: three checkpoints":    tied(hashes, older, newer, newer),
		"tie: as a proof":           head + strings.Join(hashes, "\n") + "\n\n" + texts,
		"a proof as a tie":          strings.Replace(whole, head, "jobledger-consistency/v1\n", 1),
	}
}

// TestDocsVerifierOfProofs gives proofs to the script in docs/security.md, which shares no code with this
// program, and to the program: those by any of 19 kept checkpoints hold, and what was changed does not. The
// script gives the same answers without its assertions (-O), for it has none.
func TestDocsVerifierOfProofs(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; CI installs it")
	}
	_, script, _ := strings.Cut(readPage(t, "docs/security.md"), "```python\n")
	script, _, _ = strings.Cut(script, "```")
	if n := strings.Count(script, "\n"); n == 0 || n > 45 {
		t.Fatalf("the script has %d lines, want up to 45", n)
	}
	s := site{TB: t, dir: t.TempDir()}
	s.ok(os.WriteFile(s.path("verify_proof.py"), []byte(script), 0o600))
	proofs, kept := keptProofs(s)
	if len(kept) != 19 {
		t.Fatalf("%d checkpoints were kept", len(kept))
	}
	s.ok(os.WriteFile(s.path("kept"), bytes.Join(kept, nil), 0o600))
	s.ok(os.WriteFile(s.path("kept-crlf"), bytes.ReplaceAll(bytes.Join(kept, nil), []byte("\n"), []byte("\r\n")),
		0o600))
	names := slices.Sorted(maps.Keys(proofs))
	s.ok(os.Mkdir(s.path("proofs"), 0o700))
	for i, name := range names {
		s.ok(os.WriteFile(s.path(fmt.Sprint("proofs/", i)), []byte(proofs[name]), 0o600))
	}
	const driver = `
import contextlib, io, runpy, sys
for i in range(int(sys.argv[1])):
    for kept in "kept", "kept-crlf", "verify_proof.py":
        sys.argv = ["verify_proof.py", "proofs/%d" % i, kept]
        try:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                runpy.run_path("verify_proof.py")
            print("holds" if "not proven: " in said.getvalue() else "says nothing")
        except SystemExit as e:
            print(e.code)
        except Exception as e:
            print("cannot be read:", e)
`
	for _, option := range []string{"-B", "-O"} {
		c := exec.Command(python, option, "-c", driver, fmt.Sprint(len(names)))
		c.Dir = s.dir
		out, err := c.CombinedOutput()
		got := strings.Split(string(out), "\n")
		if err != nil || len(got) != 3*len(names)+1 {
			t.Fatalf("python3 %s: %v\n%s", option, err, out)
		}
		for i, name := range names {
			good := strings.HasPrefix(name, "good")
			if (got[3*i] == "holds") != good || (got[3*i+1] == "holds") != good || got[3*i+2] == "holds" {
				t.Errorf("python3 %s, %s: %q\n%s", option, name, got[3*i:3*i+3], proofs[name])
			}
		}
	}
	forged := 0
	for i, name := range names {
		_, err := prove.Judge([]byte(proofs[name]), nil, kept)
		good := strings.HasPrefix(name, "good")
		if (err == nil) != good || !good && !errors.Is(err, proof.ErrInvalid) {
			t.Errorf("%s: %v\n%s", name, err, proofs[name])
		} else if !good {
			forged++
		}
		if i%16 != 0 {
			continue
		}
		for _, file := range []string{"kept", "kept-crlf"} {
			got := s.ran("verify", "--proof", fmt.Sprint("proofs/", i), "--checkpoint", file)
			if (got.code == 0) != (err == nil) || err != nil && got.code != cli.ExitDiscrepancy {
				t.Errorf("%s by %s: exit %d, %s", name, file, got.code, got.stderr)
			}
		}
	}
	if forged < 40 {
		t.Errorf("%d proofs were forged, want 40", forged)
	}
	t.Logf("%d proofs hold, %d forged ones do not", len(names)-forged, forged)
}

// keptProofs makes a ledger in which a job succeeds, of which 19 checkpoints were kept. It returns proofs
// that hold, whose names begin with "good", and others that do not.
func keptProofs(s site) (proofs map[string]string, kept [][]byte) {
	s.Helper()
	ctx := s.Context()
	proofs = make(map[string]string)
	grow := func(job string, sizes int) (service *commands.Service, kept [][]byte) {
		service = &commands.Service{Store: ledgertest.Open(s)}
		_, err := service.Enqueue(ctx, "cli:ada@build7", commands.Enqueue{Queue: "mail", ID: job})
		s.ok(err)
		_, err = service.StartSealing(ctx, "cli:ada@build7", "jobs.example.com", "", "")
		s.ok(err)
		claimed, err := service.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"}, Lease: time.Hour,
			Worker: event.Worker{Name: "w1", Boot: "b1", Host: "h"}})
		s.ok(err)
		_, err = service.Apply(ctx, "worker:w1", claimed[0].ID, commands.Succeed{Token: claimed[0].Token})
		s.ok(err)
		for i := range sizes {
			_, err := service.Enqueue(ctx, "cli:ada@build7",
				slices.Repeat([]commands.Enqueue{{Queue: "bulk"}}, 1+i*3)...)
			s.ok(err)
			head, err := prove.NextHead(ctx, service.Store)
			s.ok(err)
			text, err := head.Sign()
			s.ok(err)
			kept = append(kept, text)
		}
		return service, kept
	}
	const job = "01KDY9FY88JTQ6ZVJ2V3M5X7Q0"
	service, kept := grow(job, 19)
	provedOf := func(service *commands.Service, positions []int64, kept ...[]byte) (text string) {
		s.ok(service.Store.Read(ctx, func(tx *ledger.Tx) error {
			p, err := prove.Prove(ctx, tx, positions, kept...)
			text = string(p.Text)
			return err
		}))
		return text
	}
	tieOf := func(service *commands.Service, older, newer []byte) (text string) {
		s.ok(service.Store.Read(ctx, func(tx *ledger.Tx) error {
			p, err := prove.ProveConsistency(ctx, tx, older, newer)
			text = string(p.Text)
			return err
		}))
		return text
	}
	whole := []int64{1, 3, 4}
	for i, text := range kept {
		proofs[fmt.Sprint("good job by ", i)] = provedOf(service, whole, text)
		if i > 0 {
			proofs[fmt.Sprint("good tie to ", i)] = tieOf(service, kept[i-1], text)
			proofs[fmt.Sprint("good tie from first to ", i)] = tieOf(service, kept[0], text)
		}
	}
	for _, pos := range []int64{1, 2, 5, 255, 256, 257, 500} {
		proofs[fmt.Sprint("good event ", pos)] = provedOf(service, []int64{pos}, kept...)
	}
	another, forged := grow(job, 19)
	maps.Copy(proofs, forgedProofs(provedOf(service, whole, kept[17]), provedOf(service, []int64{5}, kept[17]),
		tieOf(service, kept[8], kept[17]), provedOf(another, whole, forged[17]),
		tieOf(another, forged[8], forged[17])))
	for _, service := range []*commands.Service{service, another} {
		if v, err := audit.VerifyStore(ctx, service.Store, 0, nil); err != nil || len(v.Findings) > 0 {
			s.Fatal(v.Findings, err)
		}
	}
	return proofs, kept
}
