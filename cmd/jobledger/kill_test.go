//go:build unix

package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/files/joblines"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
	"jobledger/schema"
)

var killAll = flag.Bool("kill-all", false,
	"kill commands whenever they come by a step, not only the first and eighth time, or with -long also the "+
		"second and fourth, and so on")

const db = "jobledger.db" // the default name

// exportOfOne writes the history of one job to a file.
func (r rig) exportOfOne(file string) {
	r.Helper()
	r.fill(func(p serviceRig) invocation {
		j := p.held("x")
		p.end(j, commands.Succeed{Token: j.Token, Result: []byte("done")})
		return invocation{}
	})
	if err := os.WriteFile(file, []byte(r.must(0, invoke("export"))+"\n"), 0o600); err != nil {
		r.Fatal(err)
	}
}

// fill creates the ledger of this site.
func (r rig) fill(prepare func(p serviceRig) invocation) (i invocation) {
	r.Helper()
	store, err := ledger.Open(context.Background(), r.ledgerAt(db))
	if err != nil {
		r.Fatal(err)
	}
	i = prepare(serviceRig{r, &commands.Service{Store: store}})
	if err := store.Close(); err != nil {
		r.Fatal(err)
	}
	return i
}

// find returns the files of the site that contain text.
func (r rig) find(text string) (where []string) {
	r.Helper()
	err := filepath.WalkDir(r.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), text) {
			where = append(where, path)
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return where
}

// copied returns a copy of this site.
func (r rig) copied() rig {
	r.Helper()
	to := r.TempDir()
	if err := os.CopyFS(to, os.DirFS(r.dir)); err != nil {
		r.Fatal(err)
	}
	return rig{site: site{TB: r.TB, dir: to}, program: r.program}
}

// dieAtEach runs i repeatedly, each time on a copy of the site, and kills it when it passes the failpoint
// step for the first time, the second, and so on, until it survives and ends with code. after checks the
// result of each kill.
func (r rig) dieAtEach(step string, i invocation, code int, after func(r rig, got exit)) (deaths int) {
	r.Helper()
	for n := 1; ; n = afterwards(n) {
		copied := r.copied()
		got := copied.do(i.dyingAt(fmt.Sprint(step, ":", n)))
		if !got.killed {
			if got.code != code {
				r.Fatalf("%s, without dying at %s:%d: exit code %d, want %d\n%s", i, step, n, got.code, code, got.stderr)
			}
			if n == 1 {
				r.Errorf("%s: it never came by %s", i, step)
			}
			return deaths
		}
		deaths++
		after(copied, got)
		if r.Failed() {
			r.Fatalf("%s: when it died at %s:%d", i, step, n)
		}
	}
}

func TestKilledAtEachStep(t *testing.T) {
	for n, trial := range slices.Concat(trials, waitingTrials) {
		t.Run(trial.name, func(t *testing.T) {
			t.Parallel()
			if !ledgertest.Long() { // one of the main steps
				steps := slices.DeleteFunc(slices.Clone(trial.steps),
					func(s string) bool { return !slices.Contains(mainSteps, s) })
				if trial.steps = steps; len(steps) > 1 {
					trial.steps = steps[n%len(steps):][:1]
				}
			}
			r := newRig(t)
			i := r.fill(trial.prepare)
			before, findings := r.inspect(db)
			if trial.damaged != (len(findings) > 0) {
				t.Fatalf("before: %+v", findings)
			}
			deaths := 0
			for _, step := range trial.steps {
				deaths += r.dieAtEach(step, i, trial.code, func(r rig, got exit) { trial.judge(r, i, before, got) })
			}
			t.Logf("%d deaths", deaths)
		})
	}
}

func afterwards(n int) int {
	switch {
	case *killAll:
		return n + 1
	case ledgertest.Long():
		return 2 * n
	}
	return 8 * n
}

// judge checks what the kill of i has left, sends i again, and checks once more.
func (d trial) judge(r rig, i invocation, before []event.Event, got exit) {
	r.Helper()
	all := strings.Fields(d.adds)
	added, findings := d.added(r.copied(), before) // opening it would repair what the kill has left
	done := slices.Equal(added, all)
	switch {
	case !done && len(added) != 0 && !slices.Contains(d.parts, len(added)),
		!slices.Equal(added, all[:len(added)]):
		r.Errorf("a part of it was carried out: %v of %v", added, all)
	case !done && got.stdout != "":
		r.Errorf("it was acknowledged and is not there: %q", got.stdout)
	case (len(findings) > 0) != (d.damaged && !done):
		r.Errorf("verify: %+v", findings)
	}
	want, code := d.adds, d.code
	if done {
		want, code = strings.TrimSpace(d.adds+" "+d.twice), d.then
	}
	r.must(code, i)
	if d.after != nil {
		d.after(r)
	}
	if added, findings := d.added(r, before); strings.Join(added, " ") != want || len(findings) > 0 {
		r.Errorf("sent again, it left %v, want %s; %+v", added, want, findings)
	}
}

// added returns the kinds of the new events.
func (d trial) added(r rig, before []event.Event) (kinds []string, findings []audit.Finding) {
	r.Helper()
	events, findings := r.inspect(db)
	if len(events) < len(before) || kindsOf(events[:len(before)]) != kindsOf(before) {
		r.Fatalf("events are lost: %s, before it was %s", kindsOf(events), kindsOf(before))
	}
	return strings.Fields(kindsOf(events[len(before):])), findings
}

// A command that creates a file gives it its final name when it is complete.
func TestKilledWhileCreatingLedger(t *testing.T) {
	for name, test := range map[string]struct {
		command invocation
		steps   []string
		then    int // its exit code when it is sent again and the file exists
	}{
		"backup": {invoke("backup", "new.db"), []string{"vacuumed", "linked"}, cli.ExitConflict},
		"replay": {invoke("replay", "--until", "pos:3", "--into", "new.db"),
			[]string{"line", "commit", "committed", "linked"}, cli.ExitConflict},
		"import": {invoke("import", "history.jsonl", "--db", "new.db"),
			[]string{"line", "begun", "list", "commit", "committed", "linked"}, cli.ExitConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.exportOfOne(r.path("history.jsonl"))
			for _, step := range test.steps {
				r.dieAtEach(step, test.command, 0, func(r rig, _ exit) {
					code := 0
					if _, err := os.Lstat(r.path("new.db")); err == nil {
						code = test.then
						r.history("new.db")
					}
					r.must(code, test.command)
					if got := kindsOf(r.history("new.db")); !strings.HasPrefix(got, "enqueued claimed succeeded") {
						t.Errorf("it holds %s", got)
					}
					r.history(db)
				})
			}
		})
	}
}

// A ledger that is compacted is the old one or the new one, and can be compacted again.
func TestKilledWhileCompacting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exportOfOne(r.path("history.jsonl")) // which makes the ledger
	want := kindsOf(r.history(db))
	steps := []string{"locked", "compact-written", "compact-checked", "kept", "cleared", "replaced"}
	for _, step := range steps {
		r.dieAtEach(step, invoke("migrate", "--compact"), 0, func(r rig, _ exit) {
			if got := kindsOf(r.history(db)); got != want {
				t.Errorf("it holds %s, want %s", got, want)
			}
			r.must(0, invoke("migrate", "--compact"))
			if got := kindsOf(r.history(db)); got != want {
				t.Errorf("compacted again, it holds %s, want %s", got, want)
			}
		})
	}
}

// When many jobs are enqueued in one call, complete chunks are stored. When the call is repeated, their keys
// make sure that each job is stored once.
func TestKilledBetweenChunks(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 10,000 jobs, which are one chunk: too slow for -short")
	}
	t.Parallel()
	r := newRig(t)
	var lines strings.Builder
	for n := range joblines.ChunkJobs + 1 {
		fmt.Fprintf(&lines, `{"key": "%d", "payload": "x"}`+"\n", n)
	}
	if err := os.WriteFile(r.path("jobs.jsonl"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	command := invoke("enqueue", "-q", "mail", "--jsonl", "jobs.jsonl")
	got := r.do(command.dyingAt("committed"))
	if there := r.count(); !got.killed || there != joblines.ChunkJobs ||
		strings.Count(got.stdout, "\n") > there {
		t.Errorf("%d jobs are there, want %d; killed: %v; acknowledged: %d", there, joblines.ChunkJobs, got.killed,
			strings.Count(got.stdout, "\n"))
	}
	if ids := strings.Fields(r.must(0, command)); len(ids) != joblines.ChunkJobs+1 ||
		len(r.history(db)) != joblines.ChunkJobs+1 {
		t.Errorf("sent again, it printed %d ids, and there are %d events", len(ids), r.count())
	}
}

var initSteps = []string{"made", "connected", "migrate", "migrated", "migrations"}

// A process killed while it creates or migrates a ledger leaves a file that the next process to open it
// completes.
func TestKilledDuringMigration(t *testing.T) {
	migrations, err := schema.SQLite()
	if err != nil {
		t.Fatal(err)
	}
	newest := len(migrations) - 1
	for version := range migrations {
		if !ledgertest.Long() && version != 0 && version != newest {
			continue
		}
		t.Run(fmt.Sprint("from ", version), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			steps := initSteps
			if version > 0 {
				r.oldLedger(migrations[:version])
				steps = steps[1:]
			}
			deaths := 0
			for _, step := range steps {
				deaths += r.dieAtEach(step, invoke("init"), 0, func(r rig, _ exit) {
					r.must(0, invoke("enqueue", "-q", "mail", "x"))
					if got := kindsOf(r.history(db)); got != "enqueued" {
						r.Errorf("it holds %q", got)
					}
				})
			}
			t.Logf("%d deaths", deaths)
		})
	}
}

// oldLedger creates a ledger as a program with only these migrations would.
func (r rig) oldLedger(migrations []schema.Migration) {
	r.Helper()
	statements := []string{fmt.Sprintf(`PRAGMA application_id = %d`, schema.ApplicationID),
		`PRAGMA journal_mode = wal`}
	for _, m := range migrations {
		statements = append(statements, m.SQL, fmt.Sprintf(`PRAGMA user_version = %d`, m.Version))
	}
	file, err := sql.Open("sqlite", r.path(db))
	if err != nil {
		r.Fatal(err)
	}
	defer file.Close()
	file.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := file.Exec(s); err != nil {
			r.Fatal(err)
		}
	}
}
