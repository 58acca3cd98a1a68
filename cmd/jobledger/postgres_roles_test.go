//go:build unix

package main

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// roleSites returns the site of a ledger's owner, and for each role of roles.sql that of a member.
func roleSites(t *testing.T) (owner site, members map[string]site) {
	t.Helper()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skipf("no psql: %v", err)
	}
	at := ledgertest.PostgresServer(t).URL()
	owner = newServerSite(t, at)
	owner.run("init")
	script := exec.Command(psql, "-X", "-q", "-f", "../../schema/postgres/roles.sql", at)
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	members = make(map[string]site)
	for _, role := range []string{"worker", "archiver", "auditor", "enqueuer"} {
		owner.administer(at, `CREATE ROLE a`+role+` LOGIN PASSWORD 'x'`, `GRANT jobledger_`+role+` TO a`+role)
		u := must(url.Parse(at))(t)
		u.User = url.UserPassword("a"+role, "x")
		members[role] = newServerSite(t, u.String())
	}
	return owner, members
}

// dsn is the address of the site's ledger.
func (s site) dsn() string { return strings.TrimPrefix(s.env[0], "JOBLEDGER_DB=") }

// forbidden is refused to every role but the owner.
var forbidden = []string{
	`DELETE FROM jobs`, `DELETE FROM jobs WHERE state = 4`, `DELETE FROM jobs WHERE n = 1`, `TRUNCATE jobs`,
	`UPDATE jobs SET state = 4`, `UPDATE jobs SET n = n + 1000`, `UPDATE jobs SET seq = seq - 1`,
	`UPDATE jobs SET id = reverse(id), seq = seq + 1`, `UPDATE jobs SET n = n + 1000, seq = seq + 1`,
	`INSERT INTO jobs SELECT * FROM jobs WHERE n = 1 ON CONFLICT (n) DO UPDATE SET state = 6`,
	`DELETE FROM keyframes`, `DELETE FROM keyframes WHERE pos = 1`,
	`UPDATE keyframes SET ended = '{"mail":[9,9,9]}'`,
	`UPDATE keyframes SET pos = pos + 1`, `TRUNCATE keyframes`,
	`INSERT INTO keyframes VALUES (1, '{}', '', '') ON CONFLICT (pos) DO UPDATE SET queued = ''`,
	`UPDATE events SET at = 0`, `DELETE FROM events`, `TRUNCATE events CASCADE`,
	`DELETE FROM events WHERE job = 1`, `INSERT INTO events SELECT * FROM events WHERE pos = 1`,
	`UPDATE names SET name = 'ceo'`, `DELETE FROM names`, `DELETE FROM workers`, `UPDATE bodies SET body = 'x'`,
	`DELETE FROM segments`, `DELETE FROM past`, `DELETE FROM departed`, `DELETE FROM queues`,
	`DELETE FROM limits`,
	`INSERT INTO segments VALUES (3, 0, 4)`, `UPDATE compatibility SET writable_from = 99`,
	`UPDATE about SET schema_version = 1`, `DELETE FROM blocks`, `DELETE FROM seals`, `DELETE FROM kinds`,
	`ALTER TABLE jobs DISABLE TRIGGER jobs_no_removal`, `DROP TRIGGER jobs_no_removal ON jobs`,
	`SET session_replication_role = replica`, `SET ROLE jobledger_owner`, `DROP TABLE jobs`,
	`CREATE OR REPLACE FUNCTION only_owner() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
	`CREATE FUNCTION pg_has_role(oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'`,
	`ALTER FUNCTION only_owner() OWNER TO CURRENT_USER`,
	`CREATE TRIGGER mine BEFORE DELETE ON jobs EXECUTE FUNCTION only_owner('x')`,
}

// noticed is what a worker may write, since its program does, and what verify says then: of rows without an
// event, and at last of a body that is gone without one.
var noticed = [][2]string{
	{`UPDATE jobs SET state = 6, seq = seq + 1 WHERE n = (SELECT max(n) FROM jobs)`, "V"},
	{`UPDATE queues SET paused = 1 - paused`, "V"},
	{`DELETE FROM deps`, "V"},
	{`DELETE FROM timetable`, "V"},
	{`INSERT INTO jobs SELECT n + 100000, 'x', 1, 1, 'x', queue, 0, 0, NULL, 0, 0, 0, 5
		FROM jobs LIMIT 1`, "V"},
	{`DELETE FROM bodies WHERE pos = (SELECT max(n) FROM jobs)`, "V07"},
}

// TestPostgresRolesCannotRewrite: by plain SQL no role but the owner removes or rewrites rows, while each
// does with the program what it is for.
func TestPostgresRolesCannotRewrite(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	owner, members := roleSites(t)
	worker, archiver := members["worker"], members["archiver"]
	worker.run("enqueue", "-q", "mail", "--key", "first", "x")
	owner.administer(owner.dsn(), `INSERT INTO jobledger.keyframes VALUES (1, '{}', '\x01', '')`)
	worker.run("work", "-q", "mail", "--drain", "--no-capture", "--", "true")
	parent := strings.TrimSpace(worker.run("enqueue", "-q", "up", "y"))
	worker.run("enqueue", "-q", "up", "--after", parent, "z")
	worker.run("schedule", "set", "nightly", "-q", "up", "--every", "1h", "s")
	worker.run("pause", "-q", "other", "--reason", "r")
	owner.run("verify")
	ctx := context.Background()
	for role, s := range members {
		conn := must(pgx.Connect(ctx, s.dsn()))(t)
		must(conn.Exec(ctx, `SET search_path = jobledger`))(t)
		for _, statement := range forbidden {
			if tag, err := conn.Exec(ctx, statement); err == nil {
				t.Errorf("as %s: %s: %s", role, statement, tag)
			}
		}
		s.ok(conn.Close(ctx))
		owner.run("verify")
	}
	worker.run("enqueue", "-q", "mail", "x")
	worker.run("work", "-q", "mail", "--drain", "--no-capture", "--", "true")
	if code, said := members["auditor"].fails("enqueue", "-q", "mail", "x"); code != cli.ExitUnexpected {
		t.Errorf("an auditor's enqueue ended with %d: %s", code, said)
	}

	lines := strings.Repeat(`{"queue":"many"}`+"\n", 150)
	s, folder := archiver, archiver.path("archive")
	owner.env = append(owner.env, "JOBLEDGER_ARCHIVE="+folder)
	s.ok(os.WriteFile(s.path("lines"), []byte(lines), 0o600))
	s.run("enqueue", "--jsonl", "lines")
	s.run("work", "-q", "many", "-j", "4", "--drain", "--no-capture", "--", "true")
	code, said := worker.fails("archive", "--older-than", "1ms", "--archive", folder)
	if code != cli.ExitUnexpected {
		t.Errorf("a worker's archive ended with %d: %s", code, said)
	}
	s.run("archive", "--older-than", "1ms", "--archive", folder)
	owner.run("verify")
	count := func() string { return owner.run("list", "-q", "many", "--limit", "0", "--json") }
	if n := strings.Count(count(), "\n"); n == 0 || n > 140 {
		t.Errorf("%d of 150 jobs are left", n)
	}

	for _, n := range noticed {
		worker.administer(worker.dsn(), `SET search_path = jobledger`, n[0])
		if got := owner.ran("verify"); got.code != cli.ExitDiscrepancy ||
			!strings.Contains(got.stdout, n[1]) {
			t.Errorf("verify after %s ended with %d: %s%s", n[0], got.code, got.stdout, got.stderr)
		}
		if n[1] != "V07" { // what is gone is gone
			owner.run("rebuild")
			owner.run("verify")
		}
	}
}
