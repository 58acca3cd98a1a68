//go:build unix

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/audit"
	"jobledger/projection/status"
)

var (
	flips    = flag.Int("flips", 0, "damaged copies of a ledger; default 100, with -short 40, with -long 500")
	flipSeed = flag.Uint64("flip-seed", 1, "what is damaged in them")
)

// dawn is the time at which the copies are read.
var dawn = time.Date(2026, 3, 15, 6, 0, 0, 0, time.UTC)

// fileSet holds the content of a ledger's files by their suffix: "", "-wal", "-shm".
type fileSet map[string][]byte

func (f fileSet) clone() fileSet {
	c := make(fileSet)
	for suffix, content := range f {
		c[suffix] = bytes.Clone(content)
	}
	return c
}

func (f fileSet) write(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "jobs.db")
	for suffix, content := range f {
		if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// copyOf copies the files of a ledger that this process has open. It runs cp, because closing one of the
// files in this process would drop SQLite's locks.
func copyOf(t testing.TB, path string) fileSet {
	t.Helper()
	f := make(fileSet)
	for _, suffix := range []string{"", "-wal"} {
		to := filepath.Join(t.TempDir(), "copy")
		if out, err := exec.Command("cp", path+suffix, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		content, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		f[suffix] = content
	}
	return f
}

// partOfNight makes a ledger of the first events of the bad night, and of the morning after it, which is only
// in the -wal file: jobs that are queued, held and finished.
func partOfNight(t testing.TB, events int) fileSet {
	t.Helper()
	history, err := os.ReadFile("../../testdata/history/bad-night.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	part := path + ".jsonl"
	lines := bytes.SplitAfter(history, []byte("\n"))
	if err := os.WriteFile(part, bytes.Join(lines[:min(events, len(lines))], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := atDawn(path, "import", part); code != cli.ExitOK {
		t.Fatalf("import: %d: %s", code, said)
	}
	store, err := ledger.OpenExisting(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	store.Now = func() time.Time { return dawn }
	s := &commands.Service{Store: store}
	var jobs []commands.Enqueue
	for i := range 12 {
		jobs = append(jobs, commands.Enqueue{Queue: "mail", Key: fmt.Sprint("morning-", i),
			Tags: map[string]string{"n": fmt.Sprint(i)}, Payload: fmt.Appendf(nil, "payload of job %d", i)})
	}
	if _, err := s.Enqueue(t.Context(), "cli:ada@desk", jobs...); err != nil {
		t.Fatal(err)
	}
	held, err := s.Claim(t.Context(), request("delta", 5))
	if err != nil || len(held) != 5 {
		t.Fatalf("%d claimed: %v", len(held), err)
	}
	for i, c := range []commands.Command{
		commands.Succeed{Token: held[0].Token, Result: []byte("sent")},
		commands.Heartbeat{Token: held[1].Token, Lease: time.Minute, Note: "half way"},
		commands.Fail{Token: held[2].Token, Code: "smtp_421", Detail: "try again"},
		commands.Release{Token: held[3].Token, Reason: "deploy"},
	} {
		if _, err := s.Apply(t.Context(), "worker:delta", held[i].ID, c); err != nil {
			t.Fatal(err)
		}
	}
	return copyOf(t, path)
}

func request(worker string, limit int) commands.ClaimRequest {
	return commands.ClaimRequest{Queues: []string{"mail"}, Version: "v2", Limit: limit,
		Worker: event.Worker{Name: worker, Boot: "boot of " + worker, Host: worker, PID: 1, Version: "v2"}}
}

// atDawn runs a command on the ledger at path.
func atDawn(path string, typed ...string) (code int, said string) {
	var out, messages bytes.Buffer
	p := &program{&cli.Program{Stdout: bufio.NewWriter(&out), Stderr: &messages,
		Now: func() time.Time { return dawn }}}
	code = p.run(context.Background(), append([]string{"--db", path}, typed...))
	return code, messages.String()
}

// account is everything that a ledger answers: by question, the text or the error.
type account struct {
	text     map[string]string
	errs     map[string]error
	events   []event.Event
	payloads map[event.JobID]string
	verified error // nil: Verify finds nothing
}

// askAll asks a ledger every question in one snapshot.
func askAll(ctx context.Context, s *ledger.Store) account {
	a := account{text: make(map[string]string), errs: make(map[string]error),
		payloads: make(map[event.JobID]string)}
	err := s.Read(ctx, func(tx *ledger.Tx) error {
		a.ask("events", func() (any, error) {
			for e, err := range tx.Events(ctx, ledger.Filter{}) {
				if err != nil {
					return nil, err
				}
				a.events = append(a.events, e)
			}
			return a.events, nil
		})
		a.ask("list", func() (any, error) {
			jobs, err := projection.List(ctx, tx, projection.Filter{})
			for i := range jobs {
				if err == nil {
					err = projection.LoadBodies(ctx, tx, &jobs[i])
				}
				a.payloads[jobs[i].ID] = string(jobs[i].Payload)
			}
			return jobs, err
		})
		now := projection.Now(dawn)
		a.ask("status", func() (any, error) { return status.Queues{At: now}.Read(ctx, tx) })
		a.ask("workers", func() (any, error) { return status.Workers{At: now, All: true}.Read(ctx, tx) })
		a.ask("attempts", func() (any, error) { return attempts.List(ctx, tx, attempts.Filter{}) })
		a.ask("list as of", func() (any, error) {
			m, err := projection.AtPos(ctx, tx, 150)
			if err != nil {
				return nil, err
			}
			return projection.ListAsOf(ctx, tx, projection.Filter{}, m)
		})
		a.verified = findings(ctx, tx)
		return nil
	})
	if err != nil {
		a.errs["read"], a.verified = err, err
	}
	return a
}

func findings(ctx context.Context, tx *ledger.Tx) error {
	v, err := audit.Verify(ctx, tx, nil)
	if err == nil && len(v.Findings) > 0 {
		err = fmt.Errorf("%d findings, %+v", len(v.Findings), v.Findings[0])
	}
	return err
}

func (a *account) ask(question string, answer func() (any, error)) {
	got, err := answer()
	if err != nil {
		a.errs[question] = err
		return
	}
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil { // for example a year that JSON cannot express
		text = fmt.Appendf(nil, "%+v", got)
	}
	a.text[question] = string(text)
}

// Verdicts on a damaged ledger.
const (
	verdictClosed  = "opens no more"
	verdictFound   = "verify finds it"
	verdictShorter = "the -wal file ends before the damage"
	verdictDetail  = "a detail of an event, which nothing repeats"
	verdictRight   = "all is right"
)

// judge compares the answers of a damaged ledger with those before. Damage must be reported, with two
// exceptions. SQLite ignores a -wal file from its first damaged frame on: the ledger is then as it was at an
// earlier moment, which is indistinguishable from a crash. And some fields of an event are stored once,
// without an index or a digest: the time, the token and the notes of what is over. But who did what to which
// job, in which order, and the state of each job are never wrong without a report.
func judge(before, after account) (verdict string, wrong []string) {
	if after.verified != nil {
		return verdictFound, nil
	}
	for question, err := range after.errs {
		return "", []string{fmt.Sprintf("verify finds nothing, but %s: %v", question, err)}
	}
	if n := len(after.events); n < len(before.events) && bones(after.events) == bones(before.events[:n]) {
		return verdictShorter, nil
	}
	verdict = verdictRight
	for _, question := range slices.Sorted(maps.Keys(before.text)) {
		got, want := after.text[question], before.text[question]
		switch {
		case got == want:
		case (question == "list" || question == "status") && got != want ||
			bones(after.events) != bones(before.events):
			wrong = append(wrong, question+": "+firstDifference(got, want))
		default:
			verdict = verdictDetail
		}
	}
	return verdict, wrong
}

// bones returns who did what to which job, in order.
func bones(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintln(&b, e.Pos, e.Job, e.N, e.Seq, e.Kind(), e.Actor, e.Worker, e.Attempt, e.From, e.To)
	}
	return b.String()
}

func firstDifference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	near := func(s string) string { return s[max(0, i-80):min(len(s), i+40)] }
	return fmt.Sprintf("got %q, was %q", near(got), near(want))
}

// nightToDamage returns the ledger that the tests damage.
func nightToDamage(t *testing.T) (base fileSet, before account) {
	t.Helper()
	base = partOfNight(t, 200)
	s, err := ledger.OpenExisting(t.Context(), base.write(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before = askAll(t.Context(), s)
	if before.verified != nil || len(before.errs) > 0 {
		t.Fatal(before.verified, before.errs)
	}
	return base, before
}

// lookAtDamaged asks a damaged ledger every question, claims from it, and returns the verdict.
func lookAtDamaged(t *testing.T, what string, f fileSet, before account) (verdict string) {
	t.Helper()
	path := f.write(t)
	defer os.RemoveAll(filepath.Dir(path))
	s, err := ledger.OpenExisting(t.Context(), "sqlite:"+path+"?sync=normal") // durability is not tested here
	if err != nil {
		if !isDamage(err) {
			t.Errorf("%s: open: %v", what, err)
		}
		return verdictClosed
	}
	defer s.Close()
	s.Now = func() time.Time { return dawn }
	after := askAll(t.Context(), s)
	for question, err := range after.errs {
		if !isDamage(err) {
			t.Errorf("%s: %s: %v", what, question, err)
		}
	}
	verdict, wrong := judge(before, after)
	for _, w := range wrong {
		t.Errorf("%s: %s", what, w)
	}
	jobs, err := (&commands.Service{Store: s}).Claim(t.Context(), request("w", 3))
	if verdict == verdictFound {
		return verdict
	}
	if err != nil {
		t.Errorf("%s: claim: %v", what, err)
	}
	for _, j := range jobs {
		if want, known := before.payloads[j.ID]; !known || string(j.Payload) != want {
			t.Errorf("%s: job %s was claimed with the payload %q, not %q", what, j.ID, j.Payload, want)
		}
	}
	if err := s.Read(t.Context(), func(tx *ledger.Tx) error { return findings(t.Context(), tx) }); err != nil {
		t.Errorf("%s: all was right before a claim, and then %v", what, err)
	}
	return verdict
}

func isDamage(err error) bool {
	for _, known := range []error{ledger.ErrDamaged, ledger.ErrNotALedger, ledger.ErrNoLedger,
		ledger.ErrUnknownKind, ledger.ErrNewerSchema, projection.ErrIllegal} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// lookThroughProgram requires an answer from every command, or an error that explains itself.
func lookThroughProgram(t *testing.T, what string, f fileSet) {
	t.Helper()
	path := f.write(t)
	defer os.RemoveAll(filepath.Dir(path))
	for _, words := range [][]string{{"status"}, {"list", "--limit", "0"}, {"events"}, {"workers", "--all"},
		{"show", "01KKQ5TNA0"}, {"history", "01KKQ5TNA0"}, {"claim", "-q", "mail"}, {"verify"}} {
		code, said := atDawn(path, words...)
		if code != cli.ExitOK && !saysWhy(said) || strings.Contains(said, "goroutine") ||
			strings.Contains(said, "runtime error") {
			t.Errorf("%s: %s: exit %d: %s", what, words[0], code, said)
		}
		// 2: it is no longer a ledger
		if words[0] == "verify" && code != cli.ExitOK && code != cli.ExitDiscrepancy && code != cli.ExitUsage {
			t.Errorf("%s: verify: exit %d: %s", what, code, said)
		}
	}
}

// flip changes one to eight bytes at a random place of a file.
func flip(base fileSet, suffix string, dice *rand.Rand) (f fileSet, what string) {
	f = base.clone()
	for range 1 + dice.IntN(8) {
		at, by := dice.IntN(len(f[suffix])), byte(1+dice.IntN(255))
		f[suffix][at] ^= by
		what += fmt.Sprintf(" %s[%d]^%#x", suffix, at, by)
	}
	return f, what
}

// A ledger with damaged bytes reports the damage, or answers correctly.
func TestDamageFlippedBytes(t *testing.T) {
	t.Parallel()
	n := *flips
	if n == 0 {
		n = ledgertest.Size(40, 40, 120)
	}
	base, before := nightToDamage(t)
	const lanes = 4
	var tally [lanes]map[string]int
	t.Run("flips", func(t *testing.T) {
		for lane := range lanes {
			tally[lane] = make(map[string]int)
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				for i := lane; i < n; i += lanes {
					suffix := ""
					if i%10 == 9 {
						suffix = "-wal"
					}
					f, what := flip(base, suffix, rand.New(rand.NewPCG(*flipSeed, uint64(i))))
					what = fmt.Sprintf("-flip-seed %d, copy %d:%s", *flipSeed, i, what)
					tally[lane][lookAtDamaged(t, what, f, before)]++
					if i%20 == 0 {
						lookThroughProgram(t, what, f)
					}
				}
			})
		}
	})
	all := make(map[string]int)
	for _, part := range tally {
		for verdict, n := range part {
			all[verdict] += n
		}
	}
	t.Logf("%d copies: %v", n, all)
	if all[verdictClosed] == 0 || all[verdictFound] == 0 || all[verdictRight] == 0 || all[verdictDetail] > n/20 {
		t.Errorf("this is not how damage falls out: %v", all)
	}
}

// The same for a ledger that is truncated, or whose -wal file is truncated, exchanged or missing.
func TestDamageTruncatedFiles(t *testing.T) {
	t.Parallel()
	base, before := nightToDamage(t)
	dice := rand.New(rand.NewPCG(*flipSeed, 1<<32))
	garbage := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(dice.IntN(256))
		}
		return b
	}
	tally := make(map[string]int)
	look := func(what string, change func(f fileSet), wants ...string) {
		t.Helper()
		f := base.clone()
		change(f)
		verdict := lookAtDamaged(t, what, f, before)
		if tally[verdict]++; len(wants) > 0 && !slices.Contains(wants, verdict) {
			t.Errorf("%s: %s", what, verdict)
		}
	}
	for range ledgertest.Size(3, 4, 25) {
		whole, wal := len(base[""]), len(base["-wal"])
		for _, n := range []int{dice.IntN(whole), dice.IntN(whole/4096) * 4096, dice.IntN(200)} {
			look(fmt.Sprintf("the first %d bytes", n), func(f fileSet) { f[""] = f[""][:n] })
			look(fmt.Sprintf("the first %d bytes, without a -wal file", n),
				func(f fileSet) { f[""] = f[""][:n]; delete(f, "-wal") }, verdictClosed, verdictFound)
		}
		n := dice.IntN(wal)
		look(fmt.Sprintf("the first %d bytes of the -wal file", n), func(f fileSet) { f["-wal"] = f["-wal"][:n] },
			verdictShorter)
		look(fmt.Sprintf("garbage from byte %d of the -wal file", n),
			func(f fileSet) { copy(f["-wal"][n:], garbage(wal)) }, verdictShorter, verdictRight)
		look(fmt.Sprintf("garbage behind the first %d bytes of the ledger", n%whole),
			func(f fileSet) { copy(f[""][n%whole:], garbage(whole)) })
	}
	look("no -wal file", func(f fileSet) { delete(f, "-wal") }, verdictShorter)
	look("an empty -wal file", func(f fileSet) { f["-wal"] = nil }, verdictShorter)
	look("a -wal file of garbage", func(f fileSet) { f["-wal"] = garbage(100_000) }, verdictShorter)
	look("garbage behind the -wal file", func(f fileSet) { f["-wal"] = append(f["-wal"], garbage(10_000)...) },
		verdictRight)
	look("garbage behind the ledger", func(f fileSet) { f[""] = append(f[""], garbage(10_000)...) })
	look("a -shm file of garbage", func(f fileSet) { f["-shm"] = garbage(32768) }, verdictRight)
	look("a -shm file that is cut off", func(f fileSet) { f["-shm"] = garbage(100) }, verdictRight)
	look("a -shm file of zeros", func(f fileSet) { f["-shm"] = make([]byte, 32768) }, verdictRight)
	t.Logf("%v", tally)
}

// alter runs a statement on a closed ledger, without its guards.
func alter(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	rows, err := db.Query(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`)
	if err != nil {
		t.Fatal(err)
	}
	var drop, create string
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		drop, create = drop+"DROP TRIGGER "+name+";", create+text+";"
	}
	if err := rows.Close(); err != nil || drop == "" {
		t.Fatal(err, "no triggers")
	}
	if _, err := db.Exec(drop + statement + ";" + create); err != nil {
		t.Fatal(err)
	}
}

// The oracle detects wrong answers; otherwise the tests above would prove nothing.
func TestDamageOracleNoticesWrongAnswers(t *testing.T) {
	t.Parallel()
	base, before := nightToDamage(t)
	for what, test := range map[string]struct {
		statement string
		want      string // verdict; "" for a wrong answer
	}{
		"a row of jobs": {
			`UPDATE jobs SET state = 4, lane = NULL WHERE n = (SELECT min(n) FROM jobs WHERE lane IS NOT NULL)`,
			verdictFound,
		},
		"a payload": {`UPDATE bodies SET body = x'41' WHERE pos = (SELECT max(n) FROM jobs)`, verdictFound},
		"a detail": {`UPDATE events SET ulid = 'another' WHERE pos = (SELECT min(pos) FROM events WHERE kind = 2)`,
			verdictDetail},
		"the end": {`DELETE FROM events WHERE pos = (SELECT max(pos) FROM events)`, verdictFound},
		"nothing": {`SELECT 1`, verdictRight},
	} {
		t.Run(what, func(t *testing.T) {
			path := base.write(t)
			alter(t, path, test.statement)
			f := make(fileSet)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f[""] = content
			if got := lookAtDamaged(t, what, f, before); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	after := before
	after.text = maps.Clone(before.text)
	after.text["list"] = strings.Replace(after.text["list"], `"morning-3"`, `"morning-4"`, 1)
	if _, wrong := judge(before, after); len(wrong) != 1 {
		t.Errorf("another job in the list is let pass: %q", wrong)
	}
	after = before
	after.events = slices.Clone(before.events)
	after.events[3].Actor = "cli:mallory"
	after.text = maps.Clone(before.text)
	after.text["events"] = "another"
	if _, wrong := judge(before, after); len(wrong) != 1 {
		t.Errorf("another actor in the history is let pass: %q", wrong)
	}
}

// A file that is not a ledger is reported with a hint, and left unchanged.
func TestForeignFileIsRefusedUnchanged(t *testing.T) {
	ledgers := partOfNight(t, 20)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(ledgers[""]); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	db, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE jobs (id TEXT); INSERT INTO jobs VALUES ('a')`); err != nil ||
		db.Close() != nil {
		t.Fatal(err)
	}
	another, err := os.ReadFile(foreign)
	if err != nil {
		t.Fatal(err)
	}
	for what, content := range map[string][]byte{
		"a ledger in gzip":            zipped.Bytes(),
		"text":                        []byte("#!/bin/sh\necho hello\n"),
		"a history in JSON":           []byte(`{"pos":1,"job":null,"seq":null,"kind":"queue_paused"}` + "\n"),
		"another program's database":  another,
		"the -wal file of a ledger":   ledgers["-wal"],
		"zeros":                       make([]byte, 100_000),
		"the second half of a ledger": ledgers[""][len(ledgers[""])/2:],
		"one byte":                    {'S'},
		"nothing":                     {},
	} {
		f := fileSet{"": content}
		path := f.write(t)
		for _, words := range [][]string{{"list"}, {"verify"}, {"claim", "-q", "mail"},
			{"enqueue", "-q", "mail", "x"}, {"init"}, {"work", "-q", "mail", "--drain", "--", "true"}} {
			if len(content) == 0 && words[0] != "list" && words[0] != "verify" && words[0] != "claim" {
				continue // an empty file becomes a ledger
			}
			code, said := atDawn(path, words...)
			if code != cli.ExitUsage || !strings.Contains(said, path) || !strings.Contains(said, "\nhint: ") {
				t.Errorf("%s: %s: exit %d: %s", what, words[0], code, said)
			}
		}
		now, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(now) != 1 {
			t.Errorf("%s: files were made: %v, %v", what, now, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
			t.Errorf("%s: it was changed: %v", what, err)
		}
	}
}
