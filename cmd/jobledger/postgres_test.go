//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/ledger/ledgertest"
	"jobledger/schema"
)

// newServerSite is newSite with the ledger at dsn, which is not created yet.
func newServerSite(t testing.TB, dsn string) site {
	t.Helper()
	s := site{TB: t, dir: t.TempDir()}
	s.env = []string{"JOBLEDGER_DB=" + dsn, "XDG_STATE_HOME=" + s.path("state"), "TZ=UTC"}
	return s
}

// administer runs statements as the user of dsn.
func (s site) administer(dsn string, statements ...string) {
	s.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	s.ok(err)
	defer conn.Close(context.Background())
	for _, statement := range statements {
		_, err := conn.Exec(context.Background(), statement)
		s.ok(err)
	}
}

// Three processes, one of which is killed while it holds a job.
func TestDemoOnPostgres(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	dsn := ledgertest.Postgres(t)
	password, _ := must(url.Parse(dsn))(t).User.Password()
	s := newServerSite(t, "")
	s.env = s.env[1:] // --db gives the address
	s.touch("a.txt")
	s.ok(os.WriteFile(s.path("b.txt"), []byte("b"), 0o600))
	out := s.run("demo", "--folder", ".", "--db", dsn)
	for _, part := range []string{"2 jobs enqueued in postgres://",
		"all 2 jobs succeeded, and every sum is right", "attempt 1 taken from doomed by sweeper:demo",
		"claimed", "attempt 2 by steady", "the projection equals the fold of the events", "jobledger --db "} {
		if !strings.Contains(out, part) {
			t.Errorf("it does not say %q:\n%s", part, out)
		}
	}
	if password != "" && strings.Contains(out, password) {
		t.Errorf("it shows the password:\n%s", out)
	}
	if _, err := os.Stat(s.path("demo.db")); err == nil {
		t.Error("it made a file, too")
	}
	s.env = append(s.env, "JOBLEDGER_DB="+dsn)
	s.run("verify")
	if code, said := s.fails("demo", "--folder", "."); code != cli.ExitConflict ||
		!strings.Contains(said, "has events already") {
		t.Errorf("a second one ended with %d: %s", code, said)
	}
}

// fails runs a command that must fail.
func (s site) fails(words ...string) (code int, said string) {
	s.Helper()
	out, err := s.command(words...).CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		s.Fatalf("jobledger %s: %v, %s", strings.Join(words, " "), err, out)
	}
	return exit.ExitCode(), string(out)
}

// Each worker runs on its own host. One is killed while it holds jobs, and another worker completes them.
func TestPostgresWorkerKilled(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	s := newServerSite(t, ledgertest.Postgres(t))
	s.run("init")
	const jobs = 60
	s.enqueueLines(jobs)
	doomed := s.work("--worker", "doomed", "-j", "4", "--lease", "4s", "--", "sh", "-c",
		"echo $JOBLEDGER_JOB >>doomed; sleep 30")
	s.eventually("it holds four jobs", func() bool { return s.linesOf("doomed") == 4 })
	steady := s.work("--worker", "steady", "-j", "4", "--lease", "9s", "--", "sh", "-c",
		"cat; echo $JOBLEDGER_JOB >>ran")
	s.ok(doomed.Process.Kill())
	<-doomed.exited
	s.wantAllSucceeded(jobs, steady)
	if n := s.linesOf("ran"); n != jobs {
		t.Errorf("%d commands ran to their end, want %d", n, jobs)
	}
	if got := strings.Count(s.run("events", "--kind", "reclaimed", "--json"), "\n") + 1; got != 4 {
		t.Errorf("%d jobs were taken back, want 4", got)
	}
}

// A worker whose server is stopped, or crashes, continues without help when the server is back. No job is
// lost, none ends twice.
func TestPostgresWorkerSurvivesServerRestart(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	server := ledgertest.PostgresServer(t)
	s := newServerSite(t, server.URL())
	s.run("init")
	const jobs = 120
	s.enqueueLines(jobs)
	w := s.work("--worker", "steady", "-j", "4", "--lease", "20s", "--", "sh", "-c",
		"echo $JOBLEDGER_JOB >>ran; sleep 0.05")
	for n, away := range []func(){server.Stop, server.Kill} {
		s.eventually("it works", func() bool { return s.linesOf("ran") > 20*(n+1) })
		away()
		if code, said := s.fails("status"); code != cli.ExitBusy ||
			!strings.Contains(said, "the server is down or out of reach") {
			t.Errorf("status without a server ended with %d: %s", code, said)
		}
		time.Sleep(300 * time.Millisecond) // the server is away for this long
		server.Start()
	}
	s.wantAllSucceeded(jobs, w)
	if n := s.linesOf("ran"); n != jobs {
		t.Errorf("%d commands ran, want %d: the leases of 20s held", n, jobs)
	}
}

// A worker that starts before its server, as after a power cut, waits for it. One that has an end says 75.
func TestPostgresWorkerWaitsAtItsStart(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	server := ledgertest.PostgresServer(t)
	s := newServerSite(t, server.URL())
	s.run("init")
	s.enqueueLines(3)
	server.Stop()
	w := s.work("--worker", "early", "--", "cat")
	w.wantSaidTimes("; waiting for it", 1)
	if code, said := s.fails("work", "-q", "mail", "--drain", "--", "cat"); code != cli.ExitBusy {
		t.Errorf("work --drain without a server ended with %d: %s", code, said)
	}
	server.Start()
	s.wantAllSucceeded(3, w)
}

// newPairSite is a ledger on a primary of its own and a standby, both of which the site's address names.
func newPairSite(t *testing.T) (s site, primary, standby *ledgertest.Server) {
	t.Helper()
	primary = ledgertest.PostgresServer(t)
	standby = primary.Standby()
	both := must(url.Parse(primary.URL() + "&target_session_attrs=read-write"))(t)
	both.Host += "," + must(url.Parse(standby.URL()))(t).Host
	s = newServerSite(t, both.String())
	s.run("init")
	return s, primary, standby
}

// A command that waits and one that follows the ledger go on where the server crashes and starts again,
// and where a standby takes over that the address names too. No event is missing, and none comes twice.
func TestPostgresWaitAndFollowSurviveTheServer(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	s, server, standby := newPairSite(t)
	ended := s.enqueue("x")
	s.run("work", "-q", "mail", "--drain", "--", "cat")
	into := func(name string, words ...string) *running {
		cmd := s.command(words...)
		out := must(os.Create(s.path(name)))(t)
		t.Cleanup(func() { _ = out.Close() })
		cmd.Stdout = out
		return s.start(cmd)
	}
	follow := into("followed", "events", "--follow", "--json")
	wait := into("awaited", "wait", "--json", ended, s.enqueue("y"))
	all := func() string { return s.run("events", "--json") + "\n" }
	for outage, back := range []func(){server.Start, standby.Promote} {
		s.eventually("both are up to date", func() bool {
			return s.linesOf("followed") == strings.Count(all(), "\n") && s.linesOf("awaited") == 1
		})
		server.Kill()
		for _, p := range []*running{follow, wait} {
			p.wantSaidTimes("; waiting for it", outage+1)
		}
		back()
		for _, p := range []*running{follow, wait} {
			p.wantSaidTimes("the ledger answers again, after ", outage+1)
		}
		s.enqueue("z")
	}
	s.run("work", "-q", "mail", "--drain", "--", "cat")
	wait.wantExit(0)
	want := all()
	s.eventually("it follows to the end", func() bool {
		return s.linesOf("followed") >= strings.Count(want, "\n")
	})
	follow.signal(syscall.SIGINT)
	follow.wantExit(0)
	if got := string(must(os.ReadFile(s.path("followed")))(t)); got != want {
		t.Errorf("it followed\n%s\nand there is\n%s", got, want)
	}
	s.run("verify")
}

func (s site) enqueueLines(n int) {
	s.Helper()
	cmd := s.command("enqueue", "-q", "mail", "--jsonl", "-")
	cmd.Stdin = strings.NewReader(strings.Repeat(`{"payload":"x"}`+"\n", n))
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
}

func (s site) linesOf(name string) int {
	text, _ := os.ReadFile(s.path(name))
	return strings.Count(string(text), "\n")
}

// wantAllSucceeded waits until n jobs have succeeded, and ends the worker.
func (s site) wantAllSucceeded(n int, w *running) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d jobs succeed", n), func() bool {
		out, err := s.command("list", "--state", "succeeded", "--limit", "1000", "--json").Output()
		return err == nil && strings.Count(string(out), "\n") == n
	})
	w.signal(syscall.SIGTERM)
	w.wantExit(0)
	s.run("verify")
}

// A problem with a server, or with the user's rights on it, is reported in one clear line. The exit code
// separates temporary errors from permanent ones, and no output shows the password.
func TestPostgresWrongPlaces(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	server := ledgertest.PostgresServer(t)
	s := newServerSite(t, server.URL())
	s.run("init")
	job := s.run("enqueue", "-q", "mail", "x")
	s.administer(server.URL(), `CREATE ROLE reader LOGIN PASSWORD 'geheim'`,
		`CREATE ROLE stranger LOGIN PASSWORD 'geheim'`,
		`GRANT USAGE ON SCHEMA jobledger TO reader`, `GRANT SELECT ON ALL TABLES IN SCHEMA jobledger TO reader`)
	at := func(user, password, database string) string {
		u := must(url.Parse(server.URL()))(t)
		u.User = url.UserPassword(user, password)
		if database != "" {
			u.Path = "/" + database
		}
		return u.String()
	}
	away := must(url.Parse(at("me", "geheim", "")))(t)
	away.Host = "127.0.0.1:1"
	for name, test := range map[string]struct {
		dsn   string
		words string
		code  int
		says  string
		hint  string
	}{
		"password": {at("reader", "geheim2", ""), "list", cli.ExitUnexpected,
			`FATAL: password authentication failed for user "reader"`,
			"PGPASSWORD, ~/.pgpass or --db gives the password"},
		"no server": {away.String(), "list", cli.ExitBusy, "the server cannot be reached: ",
			"the server is down or out of reach; try again"},
		"no database": {at("reader", "geheim", "none"), "list", cli.ExitUsage, "no ledger at postgres://reader@",
			"'jobledger init' makes one, in a database that is there"},
		"no schema": {at("reader", "geheim", "") + "&schema=other", "list", cli.ExitUsage,
			"the database has no schema other", "'jobledger init' makes one"},
		"may not make one": {at("reader", "geheim", "") + "&schema=other", "init", cli.ExitUnexpected,
			"permission denied for database",
			"to make a ledger those of its owner"},
		"may not look": {at("stranger", "geheim", ""), "list", cli.ExitUnexpected,
			"stranger may not use the schema jobledger", "jobledger_worker or jobledger_auditor"},
		"may only read": {at("reader", "geheim", ""), "enqueue -q mail y", cli.ExitUnexpected,
			"may only be read: ERROR: permission denied for table ", "the rights of jobledger_worker"},
		"may only read now": {server.URL() + "&default_transaction_read_only=on", "enqueue -q mail y",
			cli.ExitUnexpected, "read-only transaction", "a server that is not a standby"},
		"backup": {at("reader", "geheim", ""), "backup x.db", cli.ExitUsage, "backup is for a ledger in a file",
			"pg_dump makes a consistent copy"},
		"restore": {at("reader", "geheim", ""), "restore x.db", cli.ExitUsage, "restore is for a ledger in a file",
			"pg_restore or psql"},
		"no URL": {"postgres://me:geheim/geheim@127.0.0.1/x", "list", cli.ExitUsage, "not the address of a ledger",
			"--db and JOBLEDGER_DB take postgres://"},
		"doctor": {at("reader", "geheim2", ""), "doctor", cli.ExitUnexpected, "password authentication failed",
			"PGPASSWORD"},
		"import": {at("postgres", "geheim", ""), "import none", cli.ExitUsage, "no such file", ""},
		"demo": {at("reader", "geheim", ""), "demo", cli.ExitConflict, "has events already",
			"give --db another database"},
		"sslmode": {at("reader", "geheim", "") + "&sslmode=none", "list", cli.ExitUsage,
			"not the address of a ledger", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServerSite(t, test.dsn)
			code, said := s.fails(strings.Fields(test.words)...)
			if code != test.code || !strings.Contains(said, test.says) || !strings.Contains(said, test.hint) ||
				strings.Count(said, "\n") > 2 {
				t.Errorf("exit code %d, want %d: %s", code, test.code, said)
			}
			if strings.Contains(said, "geheim") {
				t.Errorf("it shows the password: %s", said)
			}
		})
	}
	reader := newServerSite(t, at("reader", "geheim", ""))
	if out := reader.run("show", job, "--json"); !strings.Contains(out, `"payload":"x"`) {
		t.Errorf("a user who may read reads %s", out)
	}
	reader.run("verify")
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestDoctorOnPostgres(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	server := ledgertest.PostgresServer(t)
	s := newServerSite(t, server.URL())
	if code, said := s.fails("doctor"); code != cli.ExitUsage || !strings.Contains(said, "no ledger at ") {
		t.Errorf("without a ledger it ends with %d: %s", code, said)
	}
	s.run("init")
	code, said := s.fails("doctor")
	if code != cli.ExitDiscrepancy || !strings.Contains(said, "D17  problem the server runs with fsync = off") ||
		!strings.Contains(said, "full_page_writes = off") {
		t.Errorf("exit code %d: %s", code, said)
	}
	code, said = s.fails("doctor", "--json")
	// a test server need not be durable
	if strings.Count(said, `{"code":"D17","severity":"problem"`) != 2 || strings.Count(said, "{") != 3 ||
		!strings.Contains(said, `{"code":"discrepancy",`) { // the error itself
		t.Errorf("exit code %d, and there is more wrong: %s", code, said)
	}
	password, _ := must(url.Parse(server.URL()))(t).User.Password()
	s.run("enqueue", "-q", "mail", "x")
	s.run("claim", "-q", "mail", "--worker", "w1")
	s.run("enqueue", "-q", "lonely", "x")
	s.administer(server.URL(), `SET search_path = jobledger`,
		`UPDATE jobs SET run_at = run_at - 600000000, lease_expires_at = lease_expires_at - 600000000`,
		`DROP VIEW attempts`, `ALTER SYSTEM SET autovacuum = off`, `SELECT pg_reload_conf()`)

	// One client holds the writers' lock and is idle in its transaction, another one holds that of older
	// programs without a transaction.
	var idle []*pgx.Conn
	for program, statements := range map[string][]string{
		"psql": {"BEGIN", `LOCK TABLE jobledger.write_lock IN SHARE UPDATE EXCLUSIVE MODE`},
		"cron": {fmt.Sprintf(`SELECT pg_advisory_lock((%d::bigint << 32) + 'jobledger'::regnamespace::oid::bigint)`,
			schema.ApplicationID)},
	} {
		conn, err := pgx.Connect(t.Context(), server.URL()+"&application_name="+program)
		s.ok(err)
		defer conn.Close(context.Background())
		for _, statement := range statements {
			_, err := conn.Exec(t.Context(), statement)
			s.ok(err)
		}
		idle = append(idle, conn)
	}
	waiting := s.start(s.command("enqueue", "-q", "mail", "y"))
	time.Sleep(doctor.WriterIdle + 500*time.Millisecond) // doctor reports a writer of this age
	code, said = s.fails("doctor", "--db", server.URL()+"&sync=normal")
	for _, part := range []string{"D25  problem psql (pid ", "D25  problem cron (pid ",
		" of postgres on 127.0.0.1 has held the write lock for ", "and 1 other waits; it is idle",
		"> SELECT pg_terminate_backend(", "D18  problem view attempts is missing",
		"D26  problem the server runs with autovacuum = off", "D17  advice --db says sync=normal",
		": 1 lease ran out, the first ", "and no process has swept",
		"D23  problem lonely: 1 job ready, the first for "} {
		if !strings.Contains(said, part) {
			t.Errorf("exit code %d, and it does not say %q:\n%s", code, part, said)
		}
	}
	if strings.Contains(said, password) {
		t.Errorf("it shows the password: %s", said)
	}
	// Who may not see what other sessions do sees how long the lock has been held at least.
	watcher := must(url.Parse(server.URL()))(t)
	watcher.User = url.UserPassword("watcher", "geheim")
	s.administer(server.URL(), `CREATE ROLE watcher LOGIN PASSWORD 'geheim'`,
		`GRANT USAGE ON SCHEMA jobledger TO watcher`, `GRANT SELECT ON ALL TABLES IN SCHEMA jobledger TO watcher`)
	_, said = s.fails("doctor", "--db", watcher.String())
	for _, part := range []string{"D25  advice psql (pid ", " has held the write lock for 2s, and 1 other waits",
		", or longer: watcher may not see what it does", `> wait, if it is an import or a rebuild; SELECT pg_term`,
		`; GRANT pg_read_all_stats TO "watcher" shows more`} {
		if !strings.Contains(said, part) {
			t.Errorf("to a user who may not see sessions it does not say %q:\n%s", part, said)
		}
	}
	for _, conn := range idle {
		s.ok(conn.Close(t.Context()))
	}
	waiting.wantExit(0)
}
