//go:build unix

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
	"jobledger/schema"
)

// The ledgers in testdata/schemas were made by the last program of their schema, with fill.sh. SQLite's
// schemas 5 to 14 and PostgreSQL's 4 to 13 were in no program: they came in one step.
const schemas = "../../testdata/schemas"

// Commits with the last program of schema 15 and of schema 16, on each engine. Before a release with a newer
// schema its last program is added here.
const (
	commitOf15 = "30b4347cfad9813e5a3fbeea3285ccd3944cacbc"
	commitOf16 = "0d9197439816f79753235eb209b69f2fcc65cca6"
)

// TestUpgradeFromEverySchema: the newest program migrates each old ledger, whose history is the same to the
// byte, and goes on with its jobs.
func TestUpgradeFromEverySchema(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(schemas + "/*.tar.gz")
	if err != nil || len(files) < 12 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range ledgertest.Sample(files, 3) {
		engine, rest, _ := strings.Cut(filepath.Base(file), "-")
		version, err := strconv.Atoi(strings.TrimSuffix(rest, ".tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(engine+"/"+strconv.Itoa(version), func(t *testing.T) {
			t.Parallel()
			upgrade(oldSite(t, file, engine), engine, version)
		})
	}
}

// TestUpgradeFromSchemasBetween: so that a program with any of them could have been released.
func TestUpgradeFromSchemasBetween(t *testing.T) {
	t.Parallel()
	steps, err := schema.SQLite()
	if err != nil {
		t.Fatal(err)
	}
	for version := 5; version <= 14; version += ledgertest.Size(9, 9, 1) {
		s := oldSite(t, schemas+"/sqlite-0004.tar.gz", "sqlite")
		for _, step := range steps[4:version] {
			s.sql(step.SQL, fmt.Sprint("PRAGMA user_version = ", step.Version))
		}
		upgrade(s, "sqlite", version)
	}
}

// upgrade migrates the ledger of the site, which an old program made, and works on it.
func upgrade(s site, engine string, version int) {
	s.Helper()
	newest := newestSchema(s, engine)
	history, err := os.ReadFile(s.path("events.jsonl"))
	s.ok(err)
	if version < newest {
		if found := s.ran("doctor").stdout; !strings.Contains(found, "D16") {
			s.Errorf("doctor says nothing of the schema: %s", found)
		}
		if engine == "postgres" {
			s.wantRefused(cli.ExitUsage, "'jobledger migrate' brings it up to date", "list")
		}
	}
	if got := s.run("migrate"); got != fmt.Sprintf("schema  %d", newest) {
		s.Errorf("migrate: %q", got)
	}
	s.run("verify")
	if got := s.ran("export"); got.code != 0 || got.stdout != string(history) {
		s.Errorf("the history is not that of the old program: %d, %s\n%s", got.code, got.stderr,
			firstDifference(got.stdout, string(history)))
	}
	if version == 16 { // with an archive
		s.run("archive", "describe")
		got := s.run("events", "--kind", "archive_described", "--json")
		if !strings.Contains(got, `"left":[["bulk",`) {
			s.Errorf("the archive is described as %s", got)
		}
		if code := s.ran("archive", "describe").code; code != cli.ExitNothing {
			s.Errorf("described twice: %d", code)
		}
	}
	for key, want := range map[string]string{"welcome-1": `"state":"succeeded"`,
		"bytes-1":  `"state":"succeeded"`,
		"poison-1": `"state":"failed"`, "retry-1": `"failures":1`, "forget-1": `"state":"succeeded"`,
		"cancel-1": `"state":"cancelled"`, "held-1": `"state":"claimed"`,
		"night-1": `"state":"queued"`} {
		found := s.ran("list", "--key", key, "--json").stdout
		if found == "" && version >= 16 && !strings.Contains(want, "queued") && !strings.Contains(want, "claimed") {
			continue // it is archived
		}
		if !strings.Contains(found, want) {
			s.Errorf("the job %s is not %s: %s", key, want, found)
		}
	}

	// It goes on: what the old program's worker held is taken back and done, and keys hold.
	s.run("sweep", "--grace", "0s")
	s.run("resume", "-q", "slow")
	s.run("work", "-q", "sms", "-q", "slow", "--drain", "--", "cat")
	for _, queue := range []string{"sms", "slow"} {
		left := s.ran("list", "-q", queue, "--state", "queued", "--state", "claimed", "--json")
		if left.code != cli.ExitNothing {
			s.Errorf("left in %s: %+v", queue, left)
		}
	}
	before := s.run("list", "--key", "night-1", "--json")
	if id := s.run("enqueue", "-q", "sms", "--key", "night-1", "is due"); !strings.Contains(before, id) {
		s.Errorf("the key night-1 gave %s, not %s", id, before)
	}
	s.wantRefused(cli.ExitConflict, "night-1", "enqueue", "-q", "sms", "--key", "night-1", "other")
	s.run("verify")
	s.run("rebuild")
	s.ok(os.WriteFile(s.path("whole.jsonl"), []byte(s.run("export")+"\n"), 0o600))
	s.run("import", "whole.jsonl", "--db", s.path("copy.db"))
	s.run("verify", "--db", s.path("copy.db"))
}

func newestSchema(t testing.TB, engine string) int {
	t.Helper()
	list := schema.SQLite
	if engine == "postgres" {
		list = schema.Postgres
	}
	steps, err := list()
	if err != nil {
		t.Fatal(err)
	}
	return len(steps)
}

// oldSite is a site with a ledger of testdata/schemas.
func oldSite(t testing.TB, file, engine string) site {
	t.Helper()
	s := site{TB: t, dir: t.TempDir()}
	if engine == "postgres" {
		s = newServerSite(t, ledgertest.Postgres(t))
	} else {
		s.env = []string{"JOBLEDGER_DB=" + s.path("jobledger.db"), "XDG_STATE_HOME=" + s.path("state")}
	}
	s.env = append(s.env, "JOBLEDGER_ARCHIVE="+s.path("jobs.db.archive"))
	s.unpack(file)
	if engine != "postgres" {
		s.ok(os.Rename(s.path("jobs.db"), s.path(db)))
		return s
	}
	statements, err := os.ReadFile(s.path("jobs.sql"))
	s.ok(err)
	dsn, _ := strings.CutPrefix(s.env[0], "JOBLEDGER_DB=")
	conn, err := pgx.Connect(context.Background(), dsn)
	s.ok(err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), string(statements), pgx.QueryExecModeSimpleProtocol)
	s.ok(err)
	return s
}

func (s site) unpack(file string) {
	s.Helper()
	packed, err := os.Open(file)
	s.ok(err)
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	s.ok(err)
	for r := tar.NewReader(plain); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		s.ok(err)
		if head.Typeflag == tar.TypeDir {
			s.ok(os.Mkdir(s.path(filepath.Base(head.Name)), 0o700))
			continue
		}
		if !filepath.IsLocal(head.Name) {
			s.Fatalf("%s has %s", file, head.Name)
		}
		text, err := io.ReadAll(r)
		s.ok(err)
		s.ok(os.WriteFile(s.path(head.Name), text, 0o600))
	}
}

// TestUpgradeIsRefusedByTheVersionBefore: a file whose schema is newer is left as it is, to the byte, by
// every verb that opens it.
func TestUpgradeIsRefusedByTheVersionBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	job := s.enqueue("a")
	newer := newestSchema(t, "sqlite") + 1
	s.sql("CREATE TABLE of_a_newer_version (a)", fmt.Sprint("PRAGMA user_version = ", newer),
		"PRAGMA wal_checkpoint(TRUNCATE)")
	wantRefusedUntouched(s, "jobledger", job, newer)
	if got := s.ran("doctor"); got.code == 0 || !strings.Contains(got.stderr+got.stdout, "newer jobledger") {
		t.Errorf("doctor: %+v", got)
	}
	s.sql("DROP TABLE of_a_newer_version", fmt.Sprint("PRAGMA user_version = ", newer-1))
	s.run("verify")
}

const newerSchema = "use a newer jobledger"

// wantRefusedUntouched runs commands of a program on the site's ledger, of which each must refuse it.
func wantRefusedUntouched(s site, program, job string, newer int) {
	s.Helper()
	before, err := os.ReadFile(s.path(db))
	s.ok(err)
	why := regexp.MustCompile(fmt.Sprintf(`has schema %d, this program knows up to \d+; `, newer) +
		newerSchema)
	for _, words := range [][]string{{"enqueue", "-q", "mail", "b"},
		{"work", "-q", "mail", "--drain", "--", "true"},
		{"claim", "-q", "mail"}, {"cancel", job}, {"sweep"}, {"list"}, {"show", job}, {"verify"}, {"rebuild"},
		{"export"}, {"backup", "copy"}, {"migrate"}, {"erase", job, "--reason", "r"},
		{"pause", "-q", "mail", "--reason", "r"}} {
		cmd := s.command(words...)
		if program != "jobledger" {
			cmd.Path, cmd.Err = program, nil
		}
		out, err := cmd.CombinedOutput()
		if err == nil || !why.Match(out) {
			s.Errorf("%s: %v, %s", words[0], err, out)
		}
	}
	after, err := os.ReadFile(s.path(db))
	s.ok(err)
	if !bytes.Equal(before, after) {
		s.Error("the ledger has other bytes")
	}
	wal, err := os.ReadFile(s.path(db + "-wal"))
	if len(wal) > 0 || err != nil && !os.IsNotExist(err) {
		s.Errorf("the -wal file has %d bytes, %v", len(wal), err)
	}
	names, err := os.ReadDir(s.dir)
	s.ok(err)
	if slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() == "copy" }) {
		s.Error("a refused backup left a file")
	}
}

// oldPrograms are the programs that oldProgram has built, by commit.
var oldPrograms = map[string]func() (program string, err error){
	commitOf15: sync.OnceValues(func() (string, error) { return buildOld(commitOf15) }),
	commitOf16: sync.OnceValues(func() (string, error) { return buildOld(commitOf16) }),
}

// oldProgram builds the program of a commit, once for the tests of both engines.
func oldProgram(t testing.TB, commit string) string {
	t.Helper()
	for _, tool := range []string{"go", "git", "tar"} {
		if _, err := exec.LookPath(tool); err != nil && os.Getenv("CI") != "true" {
			t.Skip(tool + " is missing, which in CI is a failure")
		}
	}
	if err := exec.Command("git", "cat-file", "-e", commit).Run(); err != nil {
		t.Skip("this copy of the source has no history with an old program")
	}
	program, err := oldPrograms[commit]()
	check(t, err)
	return program
}

func buildOld(commit string) (program string, err error) {
	dir, err := os.MkdirTemp(built, "old-")
	if err != nil {
		return "", err
	}
	// With -trimpath, go's cache has what was built of the same source in another folder.
	script := "git -C ../.. archive " + commit + ` | tar x -C "$0" && cd "$0" &&
		CGO_ENABLED=0 go build -trimpath -o "$0/old" ./cmd/jobledger`
	if out, err := exec.Command("sh", "-c", script, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "old"), nil
}

// TestUpgradeWhileWorkersRun: old workers work while the new program migrates their ledger. If the schema
// lets them, they go on, side by side with new workers for a while. Where not, they end and say why, and the
// new workers do their jobs. In both cases no acknowledged job is lost, and none has two commands at once.
// The old program does not open a file with the new schema, and changes nothing in it.
func TestUpgradeWhileWorkersRun(t *testing.T) {
	t.Parallel()
	if !ledgertest.Long() {
		t.Skip("builds old programs, which takes 20 s each the first time: with -long")
	}
	for _, c := range []struct {
		engine, commit string
		goesOn         bool
		mixed          time.Duration
	}{{"sqlite", commitOf15, true, 5 * time.Second}, {"sqlite", commitOf16, true, 15 * time.Second},
		{"postgres", commitOf15, false, 5 * time.Second}, {"postgres", commitOf16, false, 15 * time.Second}} {
		t.Run(c.engine+" "+c.commit[:7], func(t *testing.T) {
			t.Parallel()
			s := site{TB: t, dir: t.TempDir()}
			if c.engine == "postgres" {
				s = newServerSite(t, ledgertest.Postgres(t))
			}
			f := &fleet{site: s, program: oldProgram(t, c.commit), again: make(map[string]bool)}
			f.upgrade(c.goesOn, c.mixed)
			if c.engine == "sqlite" {
				s.sql("PRAGMA wal_checkpoint(TRUNCATE)")
				wantRefusedUntouched(s, f.program, "none", newestSchema(s, c.engine))
			}
		})
	}
}

// fleet is a site on which workers of an old program and of the new one work.
type fleet struct {
	site
	program string
	jobs    []string        // all that were acknowledged
	again   map[string]bool // those that were cancelled while they ran, and retried
}

func (f *fleet) old(words ...string) *exec.Cmd {
	cmd := f.command(words...)
	cmd.Path, cmd.Err = f.program, nil
	return cmd
}

// enqueue sends some jobs by a program, and remembers the ids that it prints.
func (f *fleet) enqueue(cmd *exec.Cmd, n int) {
	f.Helper()
	cmd.Stdin = strings.NewReader(strings.Repeat(`{"payload":"x"}`+"\n", n))
	out, err := cmd.Output()
	f.ok(err)
	f.jobs = append(f.jobs, strings.Fields(string(out))...)
}

// A command says that it runs, and whether one of its job runs still.
const fleetCommand = `last=pid.$JOBLEDGER_JOB
if [ -f $last ] && kill -0 $(cat $last); then echo $JOBLEDGER_JOB >>overlaps; fi 2>>/dev/null
echo $$ >$last; echo $JOBLEDGER_JOB $JOBLEDGER_WORKER >>ran; sleep 0.2; :`

func (f *fleet) work(worker string) []string {
	return []string{"work", "-q", "mail", "-j", "2", "--worker", worker, "--lease", "4s", "--", "sh", "-c",
		fleetCommand}
}

// ran has how often each job and each worker ran a command.
func (f *fleet) ran() (jobs, workers map[string]int) {
	jobs, workers = make(map[string]int), make(map[string]int)
	text, _ := os.ReadFile(f.path("ran"))
	for line := range strings.Lines(string(text)) {
		if job, worker, whole := strings.Cut(strings.TrimSpace(line), " "); whole {
			jobs[job]++
			workers[worker]++
		}
	}
	return jobs, workers
}

func (f *fleet) workedMore(what string, than map[string]int, workers ...string) {
	f.Helper()
	f.eventually(what, func() bool {
		_, n := f.ran()
		return !slices.ContainsFunc(workers, func(w string) bool { return n[w] < than[w]+5 })
	})
}

func (f *fleet) upgrade(goesOn bool, mixed time.Duration) {
	f.Helper()
	f.ok(f.old("init").Run())
	enqueue := []string{"enqueue", "-q", "mail", "--jsonl", "-"}
	f.enqueue(f.old(enqueue...), 120)
	olds := []*running{f.start(f.old(f.work("old-1")...)), f.start(f.old(f.work("old-2")...))}
	f.workedMore("the old workers work", nil, "old-1", "old-2")
	f.site.run("migrate")
	news := []*running{f.start(f.command(f.work("new-1")...)), f.start(f.command(f.work("new-2")...))}
	_, before := f.ran()
	if out, err := f.old("list").CombinedOutput(); err == nil || !strings.Contains(string(out), newerSchema) {
		f.Errorf("the old program lists: %v, %s", err, out)
	}
	if !goesOn {
		for _, w := range olds {
			w.wantExit(cli.ExitUsage)
			if !strings.Contains(w.said.String(), newerSchema) {
				f.Errorf("the old worker says %s", w.said)
			}
		}
	}
	for end := time.Now().Add(mixed); time.Now().Before(end); {
		f.enqueue(f.command(enqueue...), 20)
		f.retryOneThatRuns()
		time.Sleep(time.Second)
	}
	if goesOn {
		f.enqueue(f.command(enqueue...), 60)
		f.workedMore("all work after the migration", before, "old-1", "old-2", "new-1", "new-2")
		for _, w := range olds {
			w.signal(syscall.SIGTERM)
			w.wantExit(0)
		}
	}
	f.eventually("all jobs have ended", func() bool {
		return f.site.ran("list", "--state", "queued", "--state", "claimed", "--json").code == cli.ExitNothing
	})
	for _, w := range news {
		w.signal(syscall.SIGTERM)
		w.wantExit(0)
	}
	f.wantEachOnce(goesOn)
}

// retryOneThatRuns cancels a job that is claimed, if it is still so then, and retries it.
func (f *fleet) retryOneThatRuns() {
	f.Helper()
	var job struct{ ID string }
	claimed := f.site.ran("list", "--state", "claimed", "--limit", "1", "--json").stdout
	if json.Unmarshal([]byte(claimed), &job) == nil && f.site.ran("cancel", job.ID, "--reason", "r").code == 0 {
		f.site.run("retry", job.ID)
		f.again[job.ID] = true
	}
}

// wantEachOnce: each acknowledged job has succeeded, none had two commands at once, and none ran again that
// was neither retried nor a worker's that had to end.
func (f *fleet) wantEachOnce(goesOn bool) {
	f.Helper()
	f.site.run("verify")
	succeeded := f.site.run("list", "--state", "succeeded", "--limit", "0", "--json")
	for _, job := range f.jobs {
		if !strings.Contains(succeeded, job) {
			f.Errorf("%s has not succeeded: %s", job, f.site.run("history", job))
		}
	}
	if n := strings.Count(succeeded, "\n") + 1; n != len(f.jobs) {
		f.Errorf("%d jobs have succeeded, of %d", n, len(f.jobs))
	}
	if text, err := os.ReadFile(f.path("overlaps")); err == nil {
		f.Errorf("two commands of one job ran at once: %s", text)
	}
	jobs, workers := f.ran()
	for job, n := range jobs {
		if n > 1 && goesOn && !f.again[job] {
			f.Errorf("%s ran %d times: %s", job, n, f.site.run("history", job))
		}
	}
	f.Logf("%d jobs, %d of them retried; commands by worker: %v", len(f.jobs), len(f.again), workers)
}
