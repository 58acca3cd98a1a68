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
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/schema"
)

var killAll = flag.Bool("kill-all", false, "kill commands whenever they come by a step, not only the first, second, fourth, eighth… time")

const db = "jobledger.db" // the name of a ledger that is given none

// trial is a command that is killed at each of its steps. Whenever that is, the ledger holds all of what the command
// does, or nothing of it; and sending the command again does what is missing, once.
type trial struct {
	name    string
	prepare func(p pantry) invocation // fills the ledger
	code    int                       // with which the command ends
	adds    string                    // the events that it adds, in order
	parts   []int                     // how many of these may be there alone
	twice   string                    // what it adds to them when it is sent although it was carried out, and
	then    int                       // how it ends then
	steps   []string
	damaged bool        // the tables do not equal the fold until it is carried out
	after   func(r rig) // looks at the site when it has been sent again
}

// pantry is a rig whose ledger is being filled.
type pantry struct {
	rig
	*commands.Service
}

func (p pantry) job(payload string) projection.Job {
	p.Helper()
	jobs, err := p.Enqueue(context.Background(), "cli:test", commands.Enqueue{Queue: "mail", Payload: []byte(payload)})
	if err != nil {
		p.Fatal(err)
	}
	return jobs[0].Job
}

// held is a job of a worker that will not come back.
func (p pantry) held(payload string) projection.Job {
	p.Helper()
	p.job(payload)
	jobs, err := p.Claim(context.Background(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: ledger.Worker{Name: "dead", Boot: "B"}})
	if err != nil || len(jobs) != 1 {
		p.Fatalf("claim: %v, %v", jobs, err)
	}
	return jobs[0]
}

func (p pantry) end(j projection.Job, c commands.Command) {
	p.Helper()
	if _, err := p.Do(context.Background(), "worker:dead", j.ID, c); err != nil {
		p.Fatal(err)
	}
}

// Steps of every command that writes: all of them, and for commands that differ little, those that matter most.
var (
	writeSteps = []string{"begin", "begun", "list", "commit", "committed", "answer", "statement"}
	mainSteps  = []string{"list", "commit", "committed"}
)

const secret = "the secret that must not be found"

var trials = []trial{
	{name: "enqueue", adds: "enqueued", steps: writeSteps, prepare: func(p pantry) invocation {
		return invoke("enqueue", "-q", "mail", "--key", "k", "payload")
	}},
	{name: "claim", adds: "claimed", then: exitNothing, steps: mainSteps, prepare: func(p pantry) invocation {
		p.job("x")
		return invoke("claim", "-q", "mail")
	}},
	{name: "heartbeat", adds: "heartbeat", twice: "heartbeat", steps: mainSteps, prepare: func(p pantry) invocation {
		j := p.held("x")
		return invoke("heartbeat", string(j.ID), "--token", j.Token)
	}},
	{name: "succeed", adds: "succeeded", steps: mainSteps, prepare: func(p pantry) invocation {
		j := p.held("x")
		return invoke("succeed", string(j.ID), "--token", j.Token, "--result", "done")
	}},
	{name: "fail", adds: "failed", steps: mainSteps, prepare: func(p pantry) invocation {
		j := p.held("x")
		return invoke("fail", string(j.ID), "--token", j.Token, "--code", "oom")
	}},
	{name: "release", adds: "released", steps: mainSteps, prepare: func(p pantry) invocation {
		j := p.held("x")
		return invoke("release", string(j.ID), "--token", j.Token, "--delay", "1h")
	}},
	{name: "refused", code: exitLeaseLost, adds: "refused", then: exitLeaseLost, steps: mainSteps, prepare: func(p pantry) invocation {
		j := p.held("x")
		return invoke("succeed", string(j.ID), "--token", "01KDY9FY88TH00000000000009", "--result", "stale")
	}},
	{name: "cancel", adds: "cancelled", steps: mainSteps, prepare: func(p pantry) invocation {
		return invoke("cancel", string(p.job("x").ID))
	}},
	{name: "pause", adds: "queue_paused", steps: mainSteps, prepare: func(p pantry) invocation {
		return invoke("pause", "-q", "mail")
	}},
	{name: "sweep", adds: "reclaimed reclaimed reclaimed", parts: []int{2}, steps: append([]string{"looked", "reclaimed"}, writeSteps...), prepare: func(p pantry) invocation {
		for range 3 {
			p.held("x")
		}
		return invoke("sweep", "--grace", "0s", "--batch", "2").ahead(time.Hour)
	}},
	{name: "erase", adds: "erased", steps: append([]string{"checkpoint", "checkpointed"}, writeSteps...), prepare: func(p pantry) invocation {
		j := p.held(secret)
		p.end(j, commands.Succeed{Token: j.Token, Result: []byte(secret)})
		logs := p.path(filepath.Join(db+".logs", string(j.ID)))
		if err := os.MkdirAll(logs, 0o700); err != nil {
			p.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(logs, "1.out"), []byte(secret), 0o600); err != nil {
			p.Fatal(err)
		}
		return invoke("erase", string(j.ID), "--reason", "asked for")
	}, after: func(r rig) {
		if where := r.find(secret); len(where) > 0 {
			r.Errorf("what was erased is in %q", where)
		}
	}},
	{name: "rebuild", adds: "rebuilt", twice: "rebuilt", damaged: true, steps: append([]string{"rebuilt"}, writeSteps...), prepare: func(p pantry) invocation {
		for range 4 {
			p.job("x")
		}
		err := p.Store.Write(context.Background(), func(tx *ledger.Tx) error {
			_, err := tx.Exec(`UPDATE jobs SET priority = 7 WHERE n < 3`)
			if err == nil {
				_, err = tx.Exec(`DELETE FROM jobs WHERE n = 3`)
			}
			return err
		})
		if err != nil {
			p.Fatal(err)
		}
		return invoke("rebuild")
	}},
	{name: "import", adds: "enqueued claimed succeeded imported", then: exitConflict, steps: append([]string{"line"}, writeSteps...), prepare: func(p pantry) invocation {
		p.Store.Close()
		other := rig{site{p.TB, p.TempDir()}, p.program}
		other.exportOfOne(p.path("history.jsonl"))
		return invoke("import", "history.jsonl")
	}},
}

// exportOfOne writes the history of one job to file.
func (r rig) exportOfOne(file string) {
	r.Helper()
	r.fill(func(p pantry) invocation {
		j := p.held("x")
		p.end(j, commands.Succeed{Token: j.Token, Result: []byte("done")})
		return invocation{}
	})
	if err := os.WriteFile(file, []byte(r.must(0, invoke("export"))+"\n"), 0o600); err != nil {
		r.Fatal(err)
	}
}

// fill makes the ledger of this site.
func (r rig) fill(prepare func(p pantry) invocation) (i invocation) {
	r.Helper()
	store, err := ledger.Open(context.Background(), r.path(db))
	if err != nil {
		r.Fatal(err)
	}
	i = prepare(pantry{r, &commands.Service{Store: store}})
	if err := store.Close(); err != nil {
		r.Fatal(err)
	}
	return i
}

// find returns the files of the site that hold text.
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

// copied is a site like this one.
func (r rig) copied() rig {
	r.Helper()
	to := r.TempDir()
	if err := os.CopyFS(to, os.DirFS(r.dir)); err != nil {
		r.Fatal(err)
	}
	return rig{site{r.TB, to}, r.program}
}

// dieAtEach runs i again and again, each time on a copy of the site, and lets it die when it comes by step for the
// first time, the second, and so on, until it does not any more and ends with code. after looks at what each death has
// left.
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
	for _, trial := range trials {
		t.Run(trial.name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				trial.steps = slices.DeleteFunc(slices.Clone(trial.steps), func(s string) bool { return !slices.Contains(mainSteps, s) })
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
	if *killAll {
		return n + 1
	}
	return 2 * n
}

// judge looks at what the death of i has left, sends i again, and looks once more.
func (d trial) judge(r rig, i invocation, before []ledger.Event, got exit) {
	r.Helper()
	all := strings.Fields(d.adds)
	added, findings := d.added(r.copied(), before) // opening it would heal what death has left
	done := slices.Equal(added, all)
	switch {
	case !done && len(added) != 0 && !slices.Contains(d.parts, len(added)), !slices.Equal(added, all[:len(added)]):
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

// added is the kinds of the events that were not there before.
func (d trial) added(r rig, before []ledger.Event) (kinds []string, findings []projection.Finding) {
	r.Helper()
	events, findings := r.inspect(db)
	if len(events) < len(before) || kindsOf(events[:len(before)]) != kindsOf(before) {
		r.Fatalf("events are lost: %s, before it was %s", kindsOf(events), kindsOf(before))
	}
	return strings.Fields(kindsOf(events[len(before):])), findings
}

// A command that makes a file gives it its name when it is whole.
func TestKilledWhileItMakesALedger(t *testing.T) {
	for name, test := range map[string]struct {
		command invocation
		steps   []string
		then    int // how it ends when it is sent again and the file is there
	}{
		"backup": {invoke("backup", "new.db"), []string{"vacuumed", "linked"}, exitConflict},
		"replay": {invoke("replay", "--until", "pos:3", "--into", "new.db"), []string{"line", "commit", "committed", "linked"}, exitConflict},
		"import": {invoke("import", "history.jsonl", "--db", "new.db"), []string{"line", "begun", "list", "commit", "committed", "linked"}, exitConflict},
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

var initSteps = []string{"made", "connected", "migrate", "migrated", "migrations"}

// Whatever a death leaves of a ledger that is being made, or brought from an older schema to the newest, the next one
// to open it makes it whole.
func TestKilledInAMigration(t *testing.T) {
	migrations, err := schema.SQLite()
	if err != nil {
		t.Fatal(err)
	}
	for version := range len(migrations) {
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

// oldLedger makes the ledger that a program had made that knew only these migrations.
func (r rig) oldLedger(migrations []schema.Migration) {
	r.Helper()
	statements := []string{fmt.Sprintf(`PRAGMA application_id = %d`, schema.ApplicationID), `PRAGMA journal_mode = wal`}
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
