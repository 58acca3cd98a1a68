//go:build unix

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// exchanges are the ways in which users replace the file of a ledger that a worker uses: with a backup, or by
// removing it.
var exchanges = map[string]struct {
	do     func(s site)
	before bool // the -wal and -shm files stay, so new commands are refused until they are gone
	there  []string
}{
	"removed":                {func(s site) { s.remove("jobledger.db") }, true, nil},
	"a backup moved over it": {func(s site) { s.move("backup.db", "jobledger.db") }, true, []string{"first"}},
	"moved away with all its files, and a backup in its place": {func(s site) {
		s.mkdir("old")
		for _, suffix := range []string{"", "-wal", "-shm"} {
			s.move("jobledger.db"+suffix, "old/jobledger.db"+suffix)
		}
		s.move("backup.db", "jobledger.db")
	}, false, []string{"first"}},
}

func (s site) remove(name string)   { s.Helper(); s.ok(os.Remove(s.path(name))) }
func (s site) move(from, to string) { s.Helper(); s.ok(os.Rename(s.path(from), s.path(to))) }
func (s site) mkdir(name string)    { s.Helper(); s.ok(os.Mkdir(s.path(name), 0o700)) }

func TestWorkLedgerReplaced(t *testing.T) {
	ledgertest.Slow(t)
	for name, x := range exchanges {
		for _, busy := range []bool{false, true} {
			if busy {
				name += ", at work"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				s.enqueue("--key", "first", "x")
				s.run("backup", "backup.db")
				s.run("enqueue", "-q", "other", "--key", "second", "x")
				command := "exit 0"
				if busy {
					command = untilGo
				}
				w := s.work("--lease", "3s", "--", "sh", "-c", command)
				var pids []int
				if busy {
					pids = s.pids("begun", 1)
				} else {
					s.eventually("the job is done", func() bool {
						return strings.Contains(s.run("list", "--json"), "succeeded")
					})
				}
				x.do(s)
				acknowledged := slices.Clone(x.there)
				come := func(key string, refused bool) { // a new command
					t.Helper()
					cmd := s.command("enqueue", "-q", "other", "--key", key, "x")
					out, err := cmd.CombinedOutput()
					switch {
					case err == nil && refused:
						t.Errorf("%s was acknowledged: %s", key, out)
					case err != nil && (!refused || !strings.Contains(string(out), "stray file next to it: ") ||
						!strings.Contains(string(out), "\nhint: end what still uses the old ledger")):
						t.Errorf("%s: %v: %s", key, err, out)
					case err == nil:
						acknowledged = append(acknowledged, key)
					}
				}
				come("meanwhile", x.before)
				w.wantSaid("file was replaced or removed: " + s.path("jobledger.db"))
				w.wantExit(cli.ExitBusy)
				w.wantSaid("hint: the file was exchanged under this process; start it again")
				s.eventually("the command has ended", func() bool { return gone(pids) })
				come("afterwards", x.before)
				if x.before { // as the hint advises
					s.remove("jobledger.db-wal")
					s.remove("jobledger.db-shm")
				}
				come("then", false)
				for _, key := range acknowledged {
					if n := strings.Count(s.run("list", "--limit", "0", "--json"), `"key":"`+key+`"`); n != 1 {
						t.Errorf("%s was acknowledged and is there %d times", key, n)
					}
				}
				if out := s.run("list", "--limit", "0", "--json"); strings.Contains(out, `"key":"second"`) {
					t.Errorf("something of the old ledger is in the new one:\n%s", out)
				}
				s.run("verify")
				if _, err := os.Stat(s.path("old")); err == nil {
					s.run("verify", "--db", "old/jobledger.db")
					if out := s.run("list", "--db", "old/jobledger.db", "--json"); !strings.Contains(out,
						`"key":"second"`) || strings.Contains(out, "meanwhile") {
						t.Errorf("the old ledger is not what it was:\n%s", out)
					}
				}
				s.work("--drain", "--", "true").wantExit(cli.ExitOK)
			})
		}
	}
}
