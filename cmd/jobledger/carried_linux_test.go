package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// carry enqueues, as a user, a job that carries a command: one that writes who ran it into ran.
func (s site) carry(uid int, command string) outcome {
	s.Helper()
	payload := fmt.Sprintf(`{"argv":["/bin/sh","-c",%q],"dir":%q,"env":{"PATH":"/usr/bin:/bin"},`+
		`"umask":"0077"}`+"\n", command, s.dir)
	s.ok(os.WriteFile(s.path("carried.jsonl"), fmt.Appendf(nil,
		`{"name":"c","queue":"sh","every":"24h","max_attempts":1,"payload":%q,"form":"argv",`+
			`"overlap":"allow"}`+"\n",
		payload), 0o644))
	s.ok(os.Chmod(s.path("carried.jsonl"), 0o644))
	if o := s.as(uid, "schedule", "apply", "carried.jsonl"); o.code != cli.ExitOK {
		return o
	}
	return s.as(uid, "schedule", "run", "c")
}

// ownLedger is a ledger of ada's own with a queue of commands.
func ownLedger(t *testing.T) site {
	t.Helper()
	s := shared(t)
	s.ok(os.Chown(s.dir, adaUID, adaUID))
	s.ok(os.Chmod(s.dir, 0o755))
	for _, words := range [][]string{{"init"}, {"queue", "set", "-q", "sh", "--commands"}} {
		if o := s.as(adaUID, words...); o.code != cli.ExitOK {
			t.Fatal(o.stderr)
		}
	}
	s.chmod("jobs.db", 0o600)
	return s
}

const runCarried = "id -u >>ran"

// What may not run what a ledger carries: every way in which another user could have written it. Nothing is
// claimed, and nothing runs.
func TestCommandsAreOfOwnLedgerOnly(t *testing.T) {
	t.Parallel()
	type refusal struct {
		uid  int
		why  string
		make func(s site)
	}
	both := func(uid int, args ...string) func(site) {
		return func(s site) {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = s.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				s.Fatalf("%v: %s", err, out)
			}
		}
	}
	for name, test := range map[string]refusal{
		"the group may " +
			"write": {adaUID, `may write .*jobs\.db \(mode 0620\)`, func(s site) { s.chmod("jobs.db", 0o620) }},
		"all may " +
			"write": {adaUID, `every user may write .*jobs\.db`, func(s site) { s.chmod("jobs.db", 0o602) }},
		"an access list": {adaUID, `has an access list|may write`, func(s site) {
			// user::rw-, user:BOB:rw-, group::---, mask::r--, other::---
			acl := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 6, 0,
				0x4a, 0xee, 0, 0, 4, 0, 0, 0, 255, 255, 255, 255,
				16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255}
			if err := unix.Setxattr(s.path("jobs.db"), "system.posix_acl_access", acl, 0); err == unix.ENOTSUP {
				s.chmod("jobs.db", 0o620) // no lists here
			} else if err != nil {
				s.Fatal(err)
			}
		}},
		"another user's file": {adaUID, `belongs to the user 61002`, func(s site) {
			both(0, "chown", "61002", "jobs.db")(s)
			s.chmod("jobs.db", 0o604)
			s.chmod("jobs.db", 0o646)
		}},
		"the folder is " +
			"open": {adaUID, `others may write the folder`, func(s site) { s.chmod(".", 0o775) }},
		"the folder is " +
			"another's": {adaUID, `the folder .* belongs to the user 61002`, both(0, "chown", "61002", ".")},
		"a sticky folder " +
			"itself": {adaUID, `every user may make files in`, func(s site) {
			both(0, "chown", "0", ".")(s)
			s.chmod(".", 0o777|os.ModeSticky)
		}},
		"a sticky folder of " +
			"ada's": {adaUID, `others may write the folder`, func(s site) { s.chmod(".", 0o777|os.ModeSticky) }},
		"root, and ada's " +
			"ledger": {rootUID, `root runs commands from root's own ledger only`, func(site) {}},
		"another user, and a ledger to read": {bobUID, `.`, func(s site) { s.chmod("jobs.db", 0o644) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ownLedger(t)
			if o := s.carry(adaUID, runCarried); o.code != cli.ExitOK {
				t.Fatal(o.stderr)
			}
			test.make(s)
			tail := s.tailNow()
			o := s.as(test.uid, "work", "-q", "sh", "--commands", "--drain")
			if o.code == cli.ExitOK || !matches(test.why, o.stderr) {
				t.Errorf("exit code %d: %s", o.code, o.stderr)
			}
			if test.uid != bobUID && o.code != cli.ExitUsage {
				t.Errorf("exit code %d: %s", o.code, o.stderr)
			}
			if _, err := os.Stat(s.path("ran")); err == nil || s.tailNow() != tail {
				t.Error("it ran, or was claimed")
			}
		})
	}
}

// tailNow is how many events the ledger has.
func (s site) tailNow() int {
	s.Helper()
	return strings.Count(s.as(rootUID, "events", "--json", "-n", "1000").stdout, "\n")
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// A link that another user could turn to another ledger, an imported ledger, root with --commands-from, a
// worker of other jobs, and a label that is asked for by hand.
func TestCommandsOfNobodyElse(t *testing.T) {
	t.Parallel()
	s := ownLedger(t)
	refuse := func(what string, o outcome, why string) {
		t.Helper()
		if o.code != cli.ExitUsage || !matches(why, o.stderr) {
			t.Errorf("%s: exit code %d: %s", what, o.code, o.stderr)
		}
		if _, err := os.Stat(s.path("ran")); err == nil {
			t.Errorf("%s: it ran", what)
		}
	}
	if o := s.carry(adaUID, runCarried); o.code != cli.ExitOK {
		t.Fatal(o.stderr)
	}
	work := []string{"work", "-q", "sh", "--commands", "--drain"}
	s.ok(os.Mkdir(s.path("bob"), 0o755))
	s.ok(os.Chown(s.path("bob"), bobUID, bobUID))
	s.ok(os.Symlink("../jobs.db", s.path("bob/link.db")))
	s.ok(os.Symlink("bob/link.db", s.path("link.db")))
	refuse("a link", s.as(adaUID, append(work, "--db", s.path("bob/link.db"))...), `belongs to the user 61002`)
	refuse("a link to a "+
		"link", s.as(adaUID, append(work, "--db", s.path("link.db"))...), `belongs to the user 61002`)

	s.ok(os.WriteFile(s.path("out.jsonl"), []byte(s.as(adaUID, "export").stdout), 0o644))
	if o := s.as(adaUID, "import", "out.jsonl", "--db", s.path("copy.db")); o.code != cli.ExitOK {
		t.Fatal(o.stderr)
	}
	refuse("an import", s.as(adaUID, append(work, "--db", s.path("copy.db"))...), `its events came from a file`)
	refuse("root, of any writer", s.as(rootUID, append(work, "--commands-from", "any")...),
		`the program never changes its user`)
	refuse("another word", s.as(adaUID, append(work, "--commands-from", "me")...), `is not any`)
	refuse("a command", s.as(adaUID, append(work, "--", "true")...), `each job carries its own`)
	refuse("a "+
		"label", s.as(adaUID, "work", "-q", "sh", "--capability", "jl:argv", "--drain", "--", "true"), `jl:`)
	refuse("a "+
		"server", s.as(adaUID, append(work, "--url", "http://127.0.0.1:9")...), `a server gives no commands`)
	if o := s.as(adaUID, "work", "-q", "sh", "--drain", "--", "sh", "-c", "touch ran"); o.code != cli.ExitOK ||
		!matches(`0 claimed`, o.stderr) {
		t.Errorf("a worker of other jobs: exit code %d: %s", o.code, o.stderr)
	}
	// The same ledger, by the worker that may.
	if o := s.as(adaUID, work...); o.code != cli.ExitOK || !matches(`1 claimed, 1 succeeded`, o.stderr) {
		t.Errorf("exit code %d: %s", o.code, o.stderr)
	}
	if ran, _ := os.ReadFile(s.path("ran")); strings.TrimSpace(string(ran)) != fmt.Sprint(adaUID) {
		t.Errorf("it ran as %q", ran)
	}
	if info, err := os.Stat(s.path("ran")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: its umask is 0077", info, err)
	}
	// And where all who may write it may run programs as ada.
	s.chmod("jobs.db", 0o660)
	if o := s.carry(adaUID, runCarried); o.code != cli.ExitOK {
		t.Fatal(o.stderr)
	}
	if o := s.as(adaUID, append(work, "--commands-from", "any")...); o.code != cli.ExitOK ||
		!matches(`1 claimed, 1 succeeded`, o.stderr) {
		t.Errorf("exit code %d: %s", o.code, o.stderr)
	}
	if o := s.as(adaUID, "verify"); o.code != cli.ExitOK {
		t.Error(o.stdout)
	}
}

// A folder that the group may write, as a umask of 002 makes it, is safe below one that no other user may
// enter, and not once others may.
func TestCommandsBelowClosedFolder(t *testing.T) {
	t.Parallel()
	s := ownLedger(t)
	s.ok(os.Mkdir(s.path("in"), 0o755))
	s.ok(os.Chown(s.path("in"), adaUID, sharedGID))
	s.chmod("in", 0o775)
	s.ok(os.Rename(s.path("jobs.db"), s.path("in/jobs.db")))
	s.ok(os.Symlink(s.path("in"), filepath.Join(filepath.Dir(s.dir), "way")))
	work := func(db string, want int, why string) {
		t.Helper()
		o := s.as(adaUID, "work", "-q", "sh", "--commands", "--drain", "--db", db)
		if o.code != want || !matches(why, o.stderr) {
			t.Errorf("%s: exit code %d: %s", db, o.code, o.stderr)
		}
	}
	direct, link := s.path("in/jobs.db"), filepath.Join(filepath.Dir(s.dir), "way/jobs.db")
	const refused = `others may write the folder .*in \(mode 0775\)`
	for mode, want := range map[os.FileMode]int{0o755: cli.ExitUsage, 0o750: cli.ExitUsage, 0o711: cli.ExitUsage,
		0o770: cli.ExitUsage, 0o700: cli.ExitOK, 0o744: cli.ExitOK} {
		s.chmod(".", mode)
		if why := refused; want == cli.ExitOK {
			work(direct, want, `0 claimed`)
			work(link, want, `0 claimed`)
		} else {
			work(direct, want, why+`|others may write the folder`)
			work(link, want, why+`|others may write the folder`)
		}
	}
	s.chmod(".", 0o700)
	bob := s.commandAs(bobUID, "-c", "echo >"+s.path("in/x"))
	bob.Dir, bob.Args[3] = "/", "sh"
	if o := s.outcomeOf(bob); o.code == 0 || !matches("ermission denied", o.stderr) {
		t.Errorf("bob makes a file there: %d, %s", o.code, o.stderr)
	}
	if o := s.as(adaUID, "verify", "--db", direct); o.code != cli.ExitOK {
		t.Error(o.stdout)
	}
}

// A ledger that is opened to others while a worker runs: what runs ends in order, the next job is given back,
// and the worker ends with 2.
func TestCommandsEndWithLaterChmod(t *testing.T) {
	t.Parallel()
	s := ownLedger(t)
	w := s.start(s.commandAs(adaUID, "work", "-q", "sh", "--commands"))
	if o := s.carry(adaUID, runCarried); o.code != cli.ExitOK {
		t.Fatal(o.stderr)
	}
	s.eventually("it has run", func() bool { _, err := os.Stat(s.path("ran")); return err == nil })
	s.chmod("jobs.db", 0o660)
	if o := s.carry(adaUID, "touch again"); o.code != cli.ExitOK {
		t.Fatal(o.stderr)
	}
	w.wantExit(cli.ExitUsage)
	if _, err := os.Stat(s.path("again")); err == nil {
		t.Error("it ran in a ledger that others may write")
	}
	if o := s.as(adaUID, "verify"); o.code != cli.ExitOK {
		t.Error(o.stdout)
	}
}

// A database of PostgreSQL is never of one user only.
func TestCommandsFromPostgres(t *testing.T) {
	if !ledgertest.OnPostgres(t) {
		t.Skip("for -engine postgres")
	}
	s := shared(t)
	dsn := "--db=" + ledgertest.Postgres(t)
	if o := s.as(adaUID, "work", "-q", "sh", "--commands", "--drain", dsn); o.code != cli.ExitUsage ||
		!matches(`a database that others may write`, o.stderr) {
		t.Errorf("exit code %d: %s", o.code, o.stderr)
	}
	any := []string{"work", "-q", "sh", "--commands", "--commands-from", "any", "--drain", dsn}
	if o := s.as(adaUID, any...); o.code != cli.ExitOK {
		t.Errorf("exit code %d: %s", o.code, o.stderr)
	}
}
