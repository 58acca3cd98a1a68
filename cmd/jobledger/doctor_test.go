//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/schema"
)

// withService opens the site's ledger with a clock that is off by ahead, and calls fn.
func (s site) withService(ahead time.Duration, fn func(ctx context.Context, service *commands.Service)) {
	s.Helper()
	store, err := ledger.Open(context.Background(), s.path(db))
	if err != nil {
		s.Fatal(err)
	}
	store.Now = func() time.Time { return time.Now().Add(ahead) }
	fn(context.Background(), &commands.Service{Store: store})
	if err := store.Close(); err != nil {
		s.Error(err)
	}
}

// attempts has a worker of this version attempt n jobs of mail, so long ago; failed says how they ended.
func (s site) attempts(ago time.Duration, version string, n int, failed bool) {
	s.Helper()
	s.withService(-ago, func(ctx context.Context, service *commands.Service) {
		for range n {
			_, err := service.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail", MaxAttempts: 1})
			s.ok(err)
		}
		jobs, err := service.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"}, Lease: time.Minute,
			Limit: n, Worker: event.Worker{Name: "w", Boot: "B" + version, Version: version}})
		s.ok(err)
		for _, j := range jobs {
			if failed {
				_, err = service.Fail(ctx, j, commands.Fail{Token: j.Token, Code: "gateway", Detail: "503"})
			} else {
				_, err = service.Complete(ctx, j, nil)
			}
			s.ok(err)
		}
	})
}

func (s site) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// sql runs a statement as a user with a SQLite shell would.
func (s site) sql(statements ...string) {
	s.Helper()
	file, err := sql.Open("sqlite", s.path(db))
	s.ok(err)
	defer file.Close()
	file.SetMaxOpenConns(1)
	for _, statement := range statements {
		_, err := file.Exec(statement)
		s.ok(err)
	}
}

// left leaves the ledger's files as a process does that is killed after n events.
func (s site) left(n int) {
	s.Helper()
	s.withService(0, func(ctx context.Context, service *commands.Service) {
		for range n {
			_, err := service.Enqueue(ctx, "cli:test",
				commands.Enqueue{Queue: "later", RunAt: time.Now().Add(time.Hour)})
			s.ok(err)
		}
		// another process copies them: closing them in this one would drop locks
		for _, suffix := range []string{"", "-wal", "-shm"} {
			s.ok(exec.Command("cp", s.path(db+suffix), s.path("left"+suffix)).Run())
		}
	})
	for _, suffix := range []string{"", "-wal", "-shm"} {
		s.ok(os.Rename(s.path("left"+suffix), s.path(db+suffix)))
	}
}

// doctorFindings returns the findings of doctor, which must not change the folder.
func (s site) doctorFindings(words ...string) []doctor.Finding {
	s.Helper()
	before := s.everything()
	findings := s.doctorFindingsWhileChanging(words...)
	if after := s.everything(); !maps.Equal(before, after) {
		s.Errorf("doctor changed the folder: %v, before it was %v", after, before)
	}
	return findings
}

// doctorFindingsWhileChanging is doctorFindings while other processes change the folder.
func (s site) doctorFindingsWhileChanging(words ...string) (findings []doctor.Finding) {
	s.Helper()
	got := s.ran(append([]string{"doctor", "--json"}, words...)...)
	for line := range strings.Lines(got.stdout) {
		var f doctor.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Seen == "" || f.Remedy == "" {
			s.Errorf("%v: %s", err, line)
		}
		findings = append(findings, f)
	}
	problems := slices.ContainsFunc(findings,
		func(f doctor.Finding) bool { return f.Severity == doctor.Problem })
	if problems != (got.code == cli.ExitDiscrepancy) || !problems && got.code != cli.ExitOK {
		s.Errorf("exit code %d with %+v; stderr %s", got.code, findings, got.stderr)
	}
	return findings
}

// everything returns the files of the site, with what can be read without opening the ledger.
func (s site) everything() map[string]string {
	s.Helper()
	files := make(map[string]string)
	s.ok(filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && !strings.HasSuffix(path, "-shm") { // readers write into the -shm file
			files[path] = fmt.Sprintln(info.Mode(), info.Size(), info.ModTime())
		}
		return err
	}))
	return files
}

// complaint is a fault of a ledger, and how to cause it.
type complaint struct {
	name     string
	code     string
	severity doctor.Severity
	seen     string // a part of the message
	make     func(t *testing.T, s site)
	words    []string
	also     []string // other codes that are found too
	root     bool     // causing it needs root
}

var complaints = []complaint{
	{name: "every user may write", code: doctor.CodeWritable, severity: doctor.Problem,
		seen: "every user may write", make: func(t *testing.T, s site) {
			s.ok(os.Chmod(s.path(db), 0o666))
		}, also: []string{doctor.CodeReadable}},
	{name: "every user may read", code: doctor.CodeReadable, severity: doctor.Advice,
		seen: "every user may read", make: func(t *testing.T, s site) {
			s.ok(os.Chmod(s.path(db), 0o644))
		}},
	{name: "every user may read logs", code: doctor.CodeReadable, severity: doctor.Advice,
		seen: ".logs", make: func(t *testing.T, s site) {
			s.ok(os.Mkdir(s.path("jobledger.db.logs"), 0o700))
			s.ok(os.Chmod(s.path("jobledger.db.logs"), 0o755))
		}},
	{name: "every user may write into the folder", code: doctor.CodeFolder, severity: doctor.Problem,
		seen: "and so replace the ledger", make: func(t *testing.T, s site) {
			s.ok(os.Chmod(s.dir, 0o777))
		}},
	{name: "every user may make files in the folder", code: doctor.CodeFolder, severity: doctor.Advice,
		seen: "would take for the ledger's", make: func(t *testing.T, s site) {
			s.ok(os.Chmod(s.dir, 0o777|fs.ModeSticky))
		}},
	{name: "a file of another user", code: doctor.CodeOwner, severity: doctor.Problem,
		seen: "so workers of other users keep no output there", root: true, make: func(t *testing.T, s site) {
			s.ok(os.Mkdir(s.path("jobledger.db.logs"), 0o700))
			s.ok(os.Chown(s.path("jobledger.db.logs"), 12345, 12345))
		}},
	{name: "a link", code: doctor.CodeLink, severity: doctor.Advice,
		seen: "by a link", words: []string{"--db", "link.db"}, make: func(t *testing.T, s site) {
			s.ok(os.Symlink(db, s.path("link.db")))
		}},
	{name: "two names", code: doctor.CodeSecondName, severity: doctor.Problem,
		seen: "has 2 names", make: func(t *testing.T, s site) {
			s.ok(os.Link(s.path(db), s.path("second.db")))
		}},
	{name: "a -wal file that has grown", code: doctor.CodeWAL, severity: doctor.Advice,
		seen: "kept it from being used again", make: func(t *testing.T, s site) {
			s.left(1)
			s.ok(os.Truncate(s.path(db+"-wal"), doctor.MaxWAL+1))
		}},
	{name: "the -wal file of another", code: doctor.CodeForeignSidecar, severity: doctor.Problem,
		seen: "stood at this place", make: func(t *testing.T, s site) {
			s.run("backup", "b.db")
			s.left(9)
			s.ok(os.Rename(s.path("b.db"), s.path(db)))
		}, also: []string{doctor.CodeSettings}},
	{name: "the -wal file of another that was in use too", code: doctor.CodeForeignSidecar,
		severity: doctor.Problem,
		seen:     "the ledger has another history than without it", make: func(t *testing.T, s site) {
			for range 3 {
				s.enqueue("x", "--delay", "1h")
			}
			s.ok(os.Rename(s.path(db), s.path("this.db")))
			s.left(1)
			s.ok(os.Rename(s.path("this.db"), s.path(db)))
		}},
	{name: "the -wal file of another program", code: doctor.CodeForeignSidecar, severity: doctor.Problem,
		seen: "another program's database", make: func(t *testing.T, s site) {
			s.enqueue("x", "--delay", "1h")
			other, err := sql.Open("sqlite", s.path("other.db"))
			s.ok(err)
			defer other.Close()
			_, err = other.Exec(`PRAGMA journal_mode = wal; CREATE TABLE t (x); ` +
				`INSERT INTO t VALUES (randomblob(300000))`)
			s.ok(err)
			s.ok(exec.Command("cp", s.path("other.db-wal"), s.path(db+"-wal")).Run())
			s.ok(exec.Command("cp", s.path("other.db-shm"), s.path(db+"-shm")).Run())
			for _, suffix := range []string{"-wal", "-shm"} {
				s.ok(os.Chmod(s.path(db+suffix), 0o600))
			}
		}},
	{name: "a -wal file that is damaged", code: doctor.CodeForeignSidecar, severity: doctor.Problem,
		seen: "the file is sound without", make: func(t *testing.T, s site) {
			s.enqueue("x", "--delay", "1h")
			s.ok(exec.Command("cp", s.path(db), s.path("before.db")).Run())
			file, err := sql.Open("sqlite", s.path(db))
			s.ok(err)
			file.SetMaxOpenConns(1)
			// damage with correct checksums
			_, err = file.Exec(`PRAGMA wal_autocheckpoint = 0; DROP TABLE jobs`)
			s.ok(err)
			s.ok(exec.Command("cp", s.path(db+"-wal"), s.path("left-wal")).Run())
			s.ok(exec.Command("cp", s.path(db+"-shm"), s.path("left-shm")).Run())
			s.ok(file.Close())
			for from, to := range map[string]string{"before.db": db, "left-wal": db + "-wal",
				"left-shm": db + "-shm"} {
				s.ok(os.Rename(s.path(from), s.path(to)))
				s.ok(os.Chmod(s.path(to), 0o600))
			}
		}, also: []string{doctor.CodeGuards, doctor.CodeUnreadable}},
	{name: "a journal", code: doctor.CodeForeignSidecar, severity: doctor.Problem,
		seen: "-journal is there", make: func(t *testing.T, s site) {
			name := s.path(db + "-journal")
			s.ok(os.WriteFile(name, make([]byte, 512), 0o600)) // SQLite ignores a journal without its magic number
			s.ok(os.Chtimes(name, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)))
		}},
	{name: "a partial copy", code: doctor.CodeTemporary, severity: doctor.Advice,
		seen: "interrupted 2h ago", make: func(t *testing.T, s site) {
			s.ok(os.WriteFile(s.path(".jobledger.db.12345"), nil, 0o600))
			s.ok(os.Chtimes(s.path(".jobledger.db.12345"), time.Now(), time.Now().Add(-2*time.Hour)))
		}},
	{name: "no bell", code: doctor.CodeDoorbell, severity: doctor.Advice,
		seen: "is not a folder", make: func(t *testing.T, s site) {
			s.ok(os.RemoveAll(s.path("jobledger.db.bell")))
			s.ok(os.WriteFile(s.path("jobledger.db.bell"), nil, 0o600))
		}},
	{name: "no write queue", code: doctor.CodeDoorbell, severity: doctor.Advice,
		seen: "do not take turns", make: func(t *testing.T, s site) {
			s.ok(os.MkdirAll(s.path("jobledger.db.bell/lock"), 0o700))
		}},
	{name: "damaged", code: doctor.CodeUnreadable, severity: doctor.Problem,
		seen: "cannot be", make: func(t *testing.T, s site) {
			s.garble(s.path(db))
		}},
	{name: "a table is gone", code: doctor.CodeUnreadable, severity: doctor.Problem,
		seen: "queues and workers cannot be checked: ", make: func(t *testing.T, s site) {
			s.sql(`DROP TABLE jobs`)
		}, also: []string{doctor.CodeGuards}},
	{name: "damaged on a page that is not read", code: doctor.CodePages, severity: doctor.Problem,
		seen: "the file is damaged", words: []string{"--deep"}, make: func(t *testing.T, s site) {
			s.garblePage(s.rootPage("claims"))
		}},
	{name: "an old schema", code: doctor.CodeSchema, severity: doctor.Advice,
		seen: "schema is version 1", make: func(t *testing.T, s site) {
			steps, err := schema.SQLite()
			s.ok(err)
			s.ok(os.Remove(s.path(db)))
			s.sql(fmt.Sprintf(`PRAGMA application_id = %d`, schema.ApplicationID), `PRAGMA journal_mode = wal`,
				steps[0].SQL, `PRAGMA user_version = 1`)
			s.ok(os.Chmod(s.path(db), 0o600))
		}},
	{name: "a copy", code: doctor.CodeSettings, severity: doctor.Advice,
		seen: "not in WAL mode", words: []string{"--db", "b.db"}, make: func(t *testing.T, s site) {
			s.run("backup", "b.db")
		}},
	{name: "not durable", code: doctor.CodeSettings, severity: doctor.Advice,
		seen: "sync=normal", words: []string{"--db", "sqlite:jobledger.db?sync=normal"}},
	{name: "a guard is gone", code: doctor.CodeGuards, severity: doctor.Problem,
		seen: "trigger events_no_update is missing", make: func(t *testing.T, s site) {
			s.sql(`DROP TRIGGER events_no_update`)
		}},
	{name: "an event of the future", code: doctor.CodeClock, severity: doctor.Problem,
		seen: "the last event was recorded at", make: func(t *testing.T, s site) {
			s.withService(time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := service.Pause(ctx, "cli:test", "mail", "")
				s.ok(err)
			})
		}},
	{name: "a file of the future", code: doctor.CodeClock, severity: doctor.Problem,
		seen: "the clock of the file system", make: func(t *testing.T, s site) {
			s.ok(os.Chtimes(s.path(db), time.Now(), time.Now().Add(time.Hour)))
		}},
	{name: "no sweep", code: doctor.CodeLeases, severity: doctor.Problem,
		seen: "1 lease ran out", also: []string{doctor.CodeSilent}, make: func(t *testing.T, s site) {
			s.withService(-time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := service.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail"})
				s.ok(err)
				_, err = service.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"},
					Worker: event.Worker{Name: "w", Boot: "B"}, Lease: time.Minute})
				s.ok(err)
			})
		}},
	{name: "a worker is silent", code: doctor.CodeSilent, severity: doctor.Advice,
		seen: "1 worker is silent, holding no job: w; the first, ", make: func(t *testing.T, s site) {
			s.withService(-time.Hour, func(ctx context.Context, service *commands.Service) {
				s.ok(service.WorkerStarted(ctx, event.Worker{Name: "w", Boot: "B", Host: "h", PID: 7},
					[]string{"mail"}, nil))
			})
		}},
	{name: "a paused queue", code: doctor.CodePaused, severity: doctor.Advice,
		seen: "mail: paused ", make: func(t *testing.T, s site) {
			s.run("pause", "-q", "mail", "--reason", "upstream is down")
			s.enqueue("x")
		}},
	{name: "no worker takes them", code: doctor.CodeStranded, severity: doctor.Problem,
		seen: "mail: 1 job ready, the first for ", make: func(t *testing.T, s site) {
			s.withService(-time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := service.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail", Requires: []string{"gpu"}})
				s.ok(err)
			})
		}},
	{name: "a queue that fails", code: doctor.CodeFailing, severity: doctor.Problem,
		seen: "mail: 100 % of the attempts of 3m failed (10 of 10), since ", make: func(t *testing.T, s site) {
			s.attempts(time.Second, "v1", 10, true)
		}},
	{name: "jobs that wait", code: doctor.CodeBehind, severity: doctor.Problem,
		seen: "mail: jobs are ready, and no worker holds any", make: func(t *testing.T, s site) {
			s.withService(-time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := service.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail"})
				s.ok(err)
			})
			s.withService(0, func(ctx context.Context, service *commands.Service) {
				s.ok(service.WorkerStarted(ctx, event.Worker{Name: "w", Boot: "B"}, []string{"mail"}, nil))
			})
		}},
	{name: "a version that fails", code: doctor.CodeVersion, severity: doctor.Advice,
		seen: "mail: 67 % of the attempts failed since v2 came at ", make: func(t *testing.T, s site) {
			s.attempts(3*time.Hour, "v1", 40, false)
			s.attempts(80*time.Minute, "v2", 20, true)
			s.attempts(79*time.Minute, "v2", 10, false)
		}},
	{name: "no process ticks", code: doctor.CodeSchedule, severity: doctor.Problem,
		seen: "the schedule poll: due ", make: func(t *testing.T, s site) {
			s.withService(-time.Hour, func(ctx context.Context, service *commands.Service) {
				k := schedule.Keeper{Service: service, Actor: "cli:test"}
				poll := event.ScheduleSet{Name: "poll", Queue: "mail", Every: 5 * time.Minute}
				_, _, err := k.Set(ctx, schedule.Complete(poll), "")
				s.ok(err)
			})
		}},
	{name: "a job failed for good", code: doctor.CodeGaveUp, severity: doctor.Advice,
		seen: "mail: 1 job failed for good within the hour, since ", make: func(t *testing.T, s site) {
			s.attempts(3*time.Hour, "v1", 1, false)
			s.attempts(time.Minute, "v1", 1, true)
		}},
	{name: "a job was taken back", code: doctor.CodeLost, severity: doctor.Advice,
		seen: "mail: 1 job was taken back from w, whose leases ran out, since ", make: func(t *testing.T, s site) {
			s.withService(-5*time.Minute, func(ctx context.Context, service *commands.Service) {
				_, err := service.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail", MaxAttempts: 1})
				s.ok(err)
				_, err = service.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"},
					Worker: event.Worker{Name: "w", Boot: "B"}, Lease: time.Minute})
				s.ok(err)
			})
			s.withService(-time.Second, func(ctx context.Context, service *commands.Service) {
				_, err := (&commands.Sweeper{Service: service, Actor: "cli:test", Grace: new(time.Duration)}).Sweep(ctx)
				s.ok(err)
			})
		}},
	{name: "a row of the inbox that waits", code: doctor.CodeInbox, severity: doctor.Problem,
		seen: "1 row of the inbox waits, the first for ", make: func(_ *testing.T, s site) {
			s.sql(`INSERT INTO inbox (id, job, at)
VALUES ('01J9Z3NDEKTSV4RRFFQ69G5FAV', '{"queue":"mail"}', 1700000000000000)`)
		}},
	{name: "a job that stays held", code: doctor.CodeHeld, severity: doctor.Advice,
		seen: "1 job is held, and was enqueued more than a day ago; the first: ", make: func(t *testing.T, s site) {
			s.withService(-25*time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := service.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail", Hold: true})
				s.ok(err)
			})
			s.run("enqueue", "-q", "mail", "--hold", "held today")
		}},
	{name: "an archive of an older program", code: doctor.CodeArchive, severity: doctor.Advice,
		seen: "1 file of the archive was written by an older program: each question about a job in it reads all",
		make: func(t *testing.T, s site) {
			s.withService(-2*time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := service.Enqueue(ctx, "cli:test", slices.Repeat([]commands.Enqueue{{Queue: "mail",
					RunAt: time.Now().Add(time.Hour)}}, proof.BlockSize)...)
				s.ok(err)
				_, err = archive.Close(ctx, service, proof.BlockSize, archive.Options{
					Dir: s.path(db + archive.Suffix), Actor: "cli:test"})
				s.ok(err)
			})
			s.unguarded(`UPDATE events SET data = json_remove(data, '$.parts') WHERE data ->> '$.parts' <> ''`)
		}},
	{name: "an archive policy that is not carried out", code: doctor.CodeRemoval, severity: doctor.Advice,
		seen: "the archive policy is days late", make: func(t *testing.T, s site) {
			s.withService(-10*24*time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := archive.SetPolicy(ctx, service, "cli:test", event.ArchivePolicy{OlderThan: time.Hour})
				s.ok(err)
				jobs := slices.Repeat([]commands.Enqueue{{Queue: "mail", RunAt: time.Now().Add(time.Hour)}},
					proof.BlockSize)
				_, err = service.Enqueue(ctx, "cli:test", jobs...)
				s.ok(err)
			})
		}, also: []string{doctor.CodeOpen}},
	{name: "a removal that stopped", code: doctor.CodeRemoval, severity: doctor.Advice,
		seen: "the removal of archived jobs stopped ", make: func(t *testing.T, s site) {
			s.withService(-2*time.Hour, func(ctx context.Context, service *commands.Service) {
				service.NewID = func() string { // an id of now would be one of after the archived events
					return ulid.MustNew(ulid.Timestamp(time.Now().Add(-3*time.Hour)), ulid.DefaultEntropy()).String()
				}
				jobs := slices.Repeat([]commands.Enqueue{{Queue: "mail"}}, proof.BlockSize)
				done, err := service.Enqueue(ctx, "cli:test", jobs...)
				s.ok(err)
				for _, j := range done {
					_, err := service.Cancel(ctx, "cli:test", j.ID, "")
					s.ok(err)
				}
				dir := s.path(db + archive.Suffix)
				_, err = archive.Close(ctx, service, 2*proof.BlockSize, archive.Options{Dir: dir, Actor: "cli:test"})
				s.ok(err)
				m := archive.Removal{Service: service, Dir: dir, Actor: "cli:test"}
				gone, more, err := m.Step(ctx)
				s.ok(err)
				if !more || gone.Jobs == 0 {
					t.Fatalf("a step removed %d jobs, and there are more: %t", gone.Jobs, more)
				}
			})
		}},
	{name: "a job that is open for long", code: doctor.CodeOpen, severity: doctor.Advice,
		seen: "1 job has not ended, and was enqueued more than two periods of the archive policy ago; the oldest: ",
		make: func(t *testing.T, s site) {
			s.withService(-25*time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := archive.SetPolicy(ctx, service, "cli:test", event.ArchivePolicy{OlderThan: 12 * time.Hour})
				s.ok(err)
				_, err = service.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail",
					RunAt: time.Now().Add(time.Hour)})
				s.ok(err)
			})
			s.run("enqueue", "-q", "mail", "--delay", "1h", "x")
		}},
	{name: "logs of no job", code: doctor.CodeLogs, severity: doctor.Advice,
		seen: "1 log in ", make: func(t *testing.T, s site) {
			s.ok(os.MkdirAll(s.path("jobledger.db.logs/"+ulid.Make().String()), 0o700))
		}},
	{name: "logs of a job that was erased", code: doctor.CodeLogs, severity: doctor.Problem,
		seen: "jobs that were erased", make: func(t *testing.T, s site) {
			job := s.enqueue("x")
			s.run("cancel", job)
			s.run("erase", job, "--reason", "asked for")
			s.ok(os.MkdirAll(s.path("jobledger.db.logs/"+job), 0o700))
		}},
	{name: "a private key", code: doctor.CodeKey, severity: doctor.Advice,
		seen: "jobs.key is a private key next to", make: func(t *testing.T, s site) {
			s.run("seal", "keygen", "jobs", "--out", "jobs.key")
		}},
	{name: "events that are not sealed", code: doctor.CodeUnsealed, severity: doctor.Advice,
		seen: "2 events are not sealed, though they are more than an hour old: the first is event 2",
		make: func(t *testing.T, s site) {
			s.withService(-2*time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := service.StartSealing(ctx, "cli:test", "", "", "")
				s.ok(err)
				mail := commands.Enqueue{Queue: "mail"}
				_, err = service.Enqueue(ctx, "cli:test", mail, mail)
				s.ok(err)
			})
			s.run("enqueue", "-q", "mail", "x")
		}, also: []string{doctor.CodeStranded, doctor.CodeCheckpoint}},
	{name: "a checkpoint that is too old", code: doctor.CodeCheckpoint, severity: doctor.Advice,
		seen: "3 events that are more than a day old could be rewritten unnoticed: the last checkpoint that was " +
			"handed out, on ", make: func(t *testing.T, s site) {
			s.withService(-50*time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := service.StartSealing(ctx, "cli:test", "", "", "")
				s.ok(err)
				s.ok(service.Store.Write(ctx, func(tx *ledger.Tx) error {
					_, err := tree.AppendSeals(ctx, tx, tree.Seal{Size: 1, Note: "kept"})
					return err
				}))
				for _, queue := range []string{"mail", "sms", "fax"} {
					_, err = service.Pause(ctx, "cli:test", queue, "")
					s.ok(err)
				}
				_, err = service.Seal(ctx)
				s.ok(err)
			})
		}},
	{name: "a seal that was not handed out", code: doctor.CodeCheckpoint, severity: doctor.Advice,
		seen: "is in the ledger only: no checkpoint was ever handed out", make: func(t *testing.T, s site) {
			s.withService(-2*time.Hour, func(ctx context.Context, service *commands.Service) {
				_, err := service.StartSealing(ctx, "cli:test", "", "", "")
				s.ok(err)
				_, err = service.Seal(ctx)
				s.ok(err)
			})
		}},
}

// garble overwrites all of a file except its first page.
func (s site) garble(path string) {
	s.Helper()
	info, err := os.Stat(path)
	s.ok(err)
	for page := int64(1); page < info.Size()/4096; page++ {
		s.garbleAt(path, page*4096)
	}
}

// garblePage overwrites one page of the ledger; pages count from 1.
func (s site) garblePage(page int64) { s.garbleAt(s.path(db), (page-1)*4096) }

func (s site) garbleAt(path string, at int64) {
	s.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	s.ok(err)
	_, err = file.WriteAt(bytes.Repeat([]byte{0xa5}, 4096), at)
	s.ok(err)
	s.ok(file.Close())
}

func (s site) rootPage(name string) (page int64) {
	s.Helper()
	file, err := sql.Open("sqlite", s.path(db))
	s.ok(err)
	defer file.Close()
	s.ok(file.QueryRow(`SELECT rootpage FROM sqlite_schema WHERE name = ?`, name).Scan(&page))
	return page
}

func TestDoctorFindings(t *testing.T) {
	for i, c := range complaints {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.root && os.Getuid() != 0 {
				t.Skip("only root can make it so")
			}
			s := newSite(t)
			if err := os.Chmod(s.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if i == 0 || ledgertest.Long() { // all are the same before anything is wrong
				if healthy := s.doctorFindings(); len(healthy) > 0 {
					t.Fatalf("before anything is wrong: %+v", healthy)
				}
			}
			if c.make != nil {
				c.make(t, s)
			}
			findings := s.doctorFindings(c.words...)
			found := false
			for _, f := range findings {
				found = found || f.Code == c.code && f.Severity == c.severity && strings.Contains(f.Seen, c.seen)
				if f.Code != c.code && !slices.Contains(c.also, f.Code) {
					t.Errorf("it found %+v too", f)
				}
			}
			if !found {
				t.Errorf("got %+v", findings)
			}
		})
	}
}

// init lets this test binary be a process that stops itself in the middle of a read.
func init() {
	path := os.Getenv("JOBLEDGER_TEST_READ")
	if path == "" {
		return
	}
	store, err := ledger.Open(context.Background(), path)
	if err == nil {
		err = store.Read(context.Background(), func(tx *ledger.Tx) error {
			if _, err := tx.Tail(context.Background()); err != nil {
				return err
			}
			return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// isStopped waits until a process is stopped, which takes a moment after the signal was sent.
func (r rig) isStopped(w *running) {
	r.Helper()
	r.eventually("it is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.Process.Pid))
		return err == nil && bytes.Contains(stat, []byte(") T "))
	})
}

// A process that was stopped at the wrong time blocks all others, and only doctor shows it.
func TestDoctorStoppedProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("who holds a lock is known on Linux only")
	}
	for name, test := range map[string]struct {
		severity doctor.Severity
		seen     string
		stop     func(r rig) *running
	}{
		"idle": {doctor.Advice, "has the ledger open and was stopped", func(r rig) *running {
			w := r.start(r.command("work", "-q", "mail", "--", "true"))
			r.eventually("the worker is there", func() bool {
				return strings.Contains(r.ran("events").stdout, "worker_started")
			})
			stopped := func() ledger.LockHolder {
				w.signal(syscall.SIGSTOP)
				r.isStopped(w)
				for _, h := range ledger.LockHolders(r.path(db)) {
					if h.PID == w.Process.Pid {
						return h
					}
				}
				return ledger.LockHolder{}
			}
			for h := stopped(); h.Reads || h.Writes || h.InQueue; h = stopped() { // it was busy at that time
				w.signal(syscall.SIGCONT)
				time.Sleep(10 * time.Millisecond) // until the worker releases the lock
			}
			return w
		}},
		"in a transaction": {doctor.Problem, "holds the write lock", func(r rig) *running {
			return r.start(r.cmd(invoke("enqueue", "-q", "mail", "x").dyingAt("begun=stop")))
		}},
		"in a read": {doctor.Problem, "in the middle of a read", func(r rig) *running {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "JOBLEDGER_TEST_READ="+r.path(db))
			return r.start(cmd)
		}},
		"in its turn": {doctor.Problem, "had its turn", func(r rig) *running {
			first := r.start(r.cmd(invoke("enqueue", "-q", "mail", "x").dyingAt("begun=stop")))
			r.wantStopped(first)
			w := r.start(r.cmd(invoke("enqueue", "-q", "mail", "y").dyingAt("turn=stop")))
			r.wantStopped(w)
			first.signal(syscall.SIGCONT)
			first.wantExit(0)
			return w
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.must(0, invoke("init"))
			w := test.stop(r)
			r.isStopped(w)
			var findings []doctor.Finding
			r.eventually("doctor finds it", func() bool {
				findings = r.doctorFindingsWhileChanging()
				return len(findings) > 0
			})
			f := findings[0]
			if f.Code != doctor.CodeStopped || f.Severity != test.severity || !strings.Contains(f.Seen, test.seen) ||
				!strings.Contains(f.Seen, fmt.Sprintf("(pid %d)", w.Process.Pid)) {
				t.Errorf("got %+v", findings)
			}
			w.signal(syscall.SIGCONT)
			r.eventually("it is content", func() bool {
				return len(r.doctorFindingsWhileChanging()) == 0
			})
		})
	}
}

// A read that does not end keeps the -wal file growing.
func TestDoctorLongRead(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.ok(os.Chmod(s.dir, 0o700))
	s.withService(0, func(ctx context.Context, service *commands.Service) {
		begun, end := make(chan struct{}), make(chan struct{})
		var reader sync.WaitGroup
		reader.Go(func() {
			s.ok(service.Store.Read(ctx, func(tx *ledger.Tx) error {
				_, err := tx.Tail(ctx)
				close(begun)
				<-end
				return err
			}))
		})
		<-begun
		enqueue := func(n int) {
			for range n {
				_, err := service.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail",
					Payload: make([]byte, commands.MaxPayload)})
				s.ok(err)
			}
		}
		enqueue(doctor.MaxBacklog>>20 + 1)
		findings := s.doctorFindings()
		if len(findings) != 1 || findings[0].Code != doctor.CodeWAL || findings[0].Severity != doctor.Problem ||
			!strings.Contains(findings[0].Seen, "cannot be taken into the ledger") ||
			!strings.Contains(findings[0].Seen, "; nothing could be moved since ") ||
			runtime.GOOS == "linux" && !strings.Contains(findings[0].Seen, fmt.Sprintf("(pid %d)", os.Getpid())) {
			t.Errorf("got %+v", findings)
		}
		close(end)
		reader.Wait()
		enqueue(5)
		if findings := s.doctorFindings(); len(findings) > 0 {
			t.Errorf("when the read has ended: %+v", findings)
		}
	})
}

// A worker whose program was replaced by an upgrade is found until it has been started again.
func TestDoctorReplacedProgram(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows which program a process runs")
	}
	s := newSite(t)
	program, err := exec.LookPath("jobledger")
	s.ok(err)
	s.ok(exec.Command("cp", program, s.path("old")).Run())
	cmd := s.command("work", "-q", "mail", "--", "true")
	cmd.Path, cmd.Err = s.path("old"), nil
	w := s.start(cmd)
	s.eventually("the worker works", func() bool { return strings.Contains(s.ran("workers").stdout, "idle") })
	replaced := func() bool {
		return slices.ContainsFunc(s.doctorFindingsWhileChanging(), func(f doctor.Finding) bool {
			return f.Code == doctor.CodeReplaced && f.Severity == doctor.Advice &&
				strings.Contains(f.Seen, fmt.Sprintf("(pid %d)", w.Process.Pid))
		})
	}
	if replaced() {
		t.Error("found while the program is there")
	}
	s.ok(os.Remove(s.path("old")))
	if !replaced() {
		t.Error("not found")
	}
	w.signal(syscall.SIGTERM)
	w.wantExit(0)
	if replaced() {
		t.Error("found after its end")
	}
	s.run("verify")
}

// A process that has locked the whole file keeps every other one out.
func TestDoctorExclusiveLock(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	file, err := sql.Open("sqlite", s.path(db)+"?_pragma=locking_mode(exclusive)")
	s.ok(err)
	defer file.Close()
	file.SetMaxOpenConns(1)
	_, err = file.Exec(`INSERT INTO presence (boot, seen_at) VALUES ('x', 1)`)
	s.ok(err)
	found := s.doctorFindingsWhileChanging()
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Code == doctor.CodeUnreadable && strings.Contains(f.Seen, "busy")
	}) {
		t.Errorf("got %+v", found)
	}
}

// A user without rights gets fewer checks. The findings say so, and the other checks run.
func TestDoctorAsOtherUser(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.enqueue("x")
	who := "another user"
	if os.Getuid() == 0 {
		for dir := s.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			s.ok(os.Chmod(dir, 0o755))
		}
	} else {
		who = "the owner"
		s.ok(os.Chmod(s.path(db), 0))
		t.Cleanup(func() { _ = os.Chmod(s.path(db), 0o600) })
	}
	ask := func() string {
		t.Helper()
		cmd := s.command("doctor", "--json")
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			program, err := exec.LookPath("jobledger") // the program is in a folder that other users cannot read
			s.ok(err)
			cmd.Path = s.path("jobledger")
			s.ok(exec.Command("cp", program, cmd.Path).Run())
		}
		out, err := cmd.Output()
		return fmt.Sprintf("%s%v", out, err)
	}
	if got := ask(); !strings.Contains(got, `"code":"D14","severity":"problem","seen":"you may not read it`) {
		t.Errorf("%s may not read: got %s", who, got)
	}
	if os.Getuid() != 0 {
		return
	}
	s.ok(os.Chmod(s.path(db), 0o644))
	got := ask()
	for _, want := range []string{`"code":"D04","severity":"advice","seen":"the ledger belongs to `,
		`"code":"D03","severity":"advice","seen":"you may not write into the folder`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s may only read: got %s, want %s", who, got, want)
		}
	}
	if strings.Contains(got, `"problem"`) {
		t.Errorf("%s may only read: got %s", who, got)
	}
}

// Every code needs a test that produces it and a line in the README.
func TestDoctorCodesAreTestedAndDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "internal/doctor/doctor.go", nil,
		parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, _ := strconv.Unquote(l.Value); len(text) == 3 && text[0] == 'D' {
				codes = append(codes, text)
			}
		}
		return true
	})
	// tested separately
	tried := []string{doctor.CodeNetwork, doctor.CodeSpace, doctor.CodeStopped, doctor.CodeWriter,
		doctor.CodeVacuum, doctor.CodeRights, doctor.CodeServer, doctor.CodeCopy, doctor.CodeOutput,
		doctor.CodeArchive, doctor.CodeUnits, doctor.CodeUnitsUser, doctor.CodeReplaced, doctor.CodeKeyframes}
	for _, c := range complaints {
		tried = append(tried, c.code)
	}
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range codes {
		if !slices.Contains(tried, code) {
			t.Errorf("nothing makes doctor find %s", code)
		}
		if !strings.Contains(string(page), "\n| `"+code+"` |") {
			t.Errorf("docs/operations.md does not explain %s", code)
		}
	}
	if len(codes) != 48 {
		t.Errorf("there are the codes %v", codes)
	}
}
