package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/commands"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/status"
)

// taken is a copy of the ledger, made when its last event was pos.
type taken struct {
	path string
	pos  int64
	at   time.Time
	tied bool // further events followed at the same time: only pos distinguishes them
}

// randomCommands runs n random commands, and sometimes takes a copy.
func (s *scenario) randomCommands(random *rand.Rand, n int) (jobs []event.JobID, copies []taken) {
	s.T.Helper()
	ctx := s.T.Context()
	queues := []string{"mail", "web", "reports"}
	var claims []projection.Job
	claimed := func() (projection.Job, bool) {
		if len(claims) == 0 {
			return projection.Job{}, false
		}
		return claims[random.IntN(len(claims))], true
	}
	// refusals and conflicts are allowed
	try := func(actor string, j projection.Job, c commands.Command) {
		_, err := s.Apply(ctx, actor, j.ID, c)
		if err != nil && ledgerFailed(err) {
			s.T.Fatal(err)
		}
	}
	for i := range n {
		if random.IntN(3) > 0 {
			s.wait(time.Duration(random.IntN(40_000_000)) * time.Microsecond)
		}
		switch what := random.IntN(20); {
		case what < 5:
			e := commands.Enqueue{Queue: queues[random.IntN(3)], Payload: []byte(fmt.Sprint("p", i)),
				Priority: random.IntN(3), MaxAttempts: 1 + random.IntN(3)}
			if random.IntN(3) == 0 {
				e.RunAt, e.Key = s.Now.Add(time.Duration(random.IntN(200))*time.Second), fmt.Sprint("k", i)
			}
			if random.IntN(3) == 0 {
				e.Tags, e.Requires = map[string]string{"customer": fmt.Sprint(random.IntN(3))}, []string{"gpu"}
			}
			jobs = append(jobs, s.enqueue(e).ID)
		case what < 10:
			w := s.worker(fmt.Sprint("w", random.IntN(3)))
			found, err := s.Claim(ctx, commands.ClaimRequest{Queues: queues, Worker: w, Capabilities: []string{"gpu"},
				Lease: time.Minute, Limit: 1 + random.IntN(2)})
			if err != nil {
				s.T.Fatal(err)
			}
			claims = append(claims, found...)
		case what < 16:
			j, ok := claimed()
			if !ok {
				continue
			}
			part, code := random.Float64(), random.IntN(3)
			again := time.Duration(random.IntN(100)) * time.Second
			try("worker:"+j.Worker.Name, j, []commands.Command{
				commands.Heartbeat{Token: j.Token, Lease: time.Minute, Progress: &part, Note: fmt.Sprint("note ", i)},
				commands.Heartbeat{Token: j.Token, Lease: time.Minute},
				commands.Succeed{Token: j.Token, Result: []byte(fmt.Sprint("r", i)), ExitCode: &code},
				commands.Fail{Token: j.Token, Code: "smtp", Detail: "gone\n", ExitCode: &code, RetryIn: &again},
				commands.Fail{Token: j.Token, Signal: "KILL", NoRetry: random.IntN(2) == 0},
				commands.Release{Token: j.Token, Reason: "deploy", Snooze: random.IntN(2) == 0},
			}[random.IntN(6)])
		case what < 18 && len(jobs) > 0:
			j := projection.Job{ID: jobs[random.IntN(len(jobs))]}
			later := s.Now.Add(time.Duration(random.IntN(300)) * time.Second)
			try("cli:ada@build7", j, []commands.Command{commands.Cancel{Reason: "c"}, commands.Retry{Reason: "r"},
				commands.Retry{},
				commands.Reschedule{RunAt: &later, Reason: "l"}}[random.IntN(4)])
		case what == 18:
			set := s.Pause
			if random.IntN(2) == 0 {
				set = s.Resume
			}
			if _, err := set(ctx, "cli:ada@build7", queues[random.IntN(3)], fmt.Sprint("because ", i)); err != nil {
				s.T.Fatal(err)
			}
		default:
			none := time.Duration(0)
			sweeper := commands.Sweeper{Service: s.Service, Actor: "sweeper:build7", Grace: &none}
			if _, err := sweeper.Sweep(ctx); err != nil {
				s.T.Fatal(err)
			}
		}
		if i%(n/8) == n/16 {
			c := taken{path: filepath.Join(s.T.TempDir(), "copy.db"), tied: random.IntN(2) == 0}
			s.copyTo(c.path)
			check(s.T, s.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
				last, _, err := tx.OneEvent(ctx, ledger.Filter{Last: true})
				c.pos, c.at = last.Pos, last.At
				return err
			}))
			if !c.tied {
				s.wait(time.Duration(random.IntN(5)) * time.Second)
				c.at = s.Now
				s.wait(time.Microsecond)
			}
			copies = append(copies, c)
		}
	}
	return jobs, copies
}

// copyTo copies the ledger as it is now into a file.
func (s *scenario) copyTo(path string) {
	s.T.Helper()
	ctx := context.Background()
	if !ledger.IsServerAddress(s.Store.DSN()) {
		_, err := s.Store.Vacuum(ctx, path)
		check(s.T, err)
		return
	}
	store, err := ledger.Open(ctx, path)
	check(s.T, err)
	defer store.Close()
	_, err = load.Replay(ctx, &commands.Service{Store: store}, "cli:test", "",
		s.Store.Lines(ctx, ledger.Filter{}, true), nil)
	check(s.T, err)
}

func ledgerFailed(err error) bool {
	code, _, _ := fault.Explain(err)
	return code == cli.ExitUnexpected || code == cli.ExitBusy || code == cli.ExitUsage
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runAt is scenario.run on the ledger at path, at the time now.
func runAt(path string, now time.Time, typed ...string) (code int, stdout string) {
	var out, messages bytes.Buffer
	p := &program{&cli.Program{Stdout: bufio.NewWriter(&out), Stderr: &messages,
		Now: func() time.Time { return now }}}
	code = p.run(context.Background(), append(typed, "--db", path))
	return code, out.String()
}

// without returns what a command printed, line by line, without the keys that only --as-of prints.
func without(t testing.TB, stdout string, keys ...string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, k := range keys {
			if _, ok := object[k]; !ok && object["pos"] == nil {
				t.Errorf("there is no %s in %s", k, line)
			}
			delete(object, k)
		}
		lines = append(lines, object)
	}
	return lines
}

// A copy that was taken at some time gives the same answers as the ledger with --as-of that time.
func TestAsOfEqualsEarlierCopy(t *testing.T) {
	t.Parallel()
	steps := ledgertest.Size(40, 40, 80)
	for seed := range ledgertest.Size[uint64](1, 1, 2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newScenario(t)
			random := rand.New(rand.NewPCG(seed, 7))
			jobs, copies := s.randomCommands(random, steps)
			s.wait(time.Hour)
			for _, c := range copies {
				moment := fmt.Sprintf("pos:%d", c.pos)
				if !c.tied {
					moment = c.at.Format(time.RFC3339Nano)
				}
				same := func(added []string, typed ...string) {
					t.Helper()
					wantCode, want := runAt(c.path, c.at, append(typed, "--json")...)
					gotCode, got := runAt(s.Store.DSN(), s.Now, append(typed, "--json", "--as-of", moment)...)
					if wantCode == cli.ExitNoJob { // the ledger knows about the later job
						wantCode = cli.ExitNothing
					}
					var both []string
					if typed[0] == "why" { // only the answers about now have hints
						both = []string{"why"}
					}
					if gotCode != wantCode ||
						!reflect.DeepEqual(without(t, got, append(added, both...)...), without(t, want, both...)) {
						t.Fatalf("%s as of %s (%+v): exit %d, want %d; got\n%swant\n%s", strings.Join(typed, " "), moment, c,
							gotCode, wantCode, got, want)
					}
				}
				same([]string{"as_of", "pos", "now"}, "status")
				now := []string{"state_now"}
				same(now, "list", "--limit", "0")
				same(now, "list", "--limit", "3")
				for _, state := range find.StateNames() {
					same(now, "list", "--limit", "0", "--state", state)
				}
				same(now, "list", "--tag", "customer=1", "--queue", "mail", "--state", "queued", "--state", "running")
				same([]string{"as_of", "pos"}, "queues")
				for range 5 {
					j := string(jobs[random.IntN(len(jobs))])
					same([]string{"as_of", "pos", "state_now"}, "why", j)
				}
				for range 5 {
					same(now, "show", string(jobs[random.IntN(len(jobs))]))
				}
			}
		})
	}
}

// A copy made by replay gives the same answers as the ledger with --as-of the time of the copy, whatever the
// clock shows, and whatever was erased since.
func TestReplayedCopyAnswersAsOfItsMoment(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	random := rand.New(rand.NewPCG(11, 7))
	begin, end := time.Date(2026, 3, 14, 22, 0, 0, 0, time.UTC), time.Date(2026, 3, 15, 4, 1, 0, 0, time.UTC)
	within := func() time.Time { return begin.Add(time.Duration(random.Int64N(int64(end.Sub(begin))))) }
	var jobs []projection.Job
	check(t, s.Store.Write(t.Context(), func(tx *ledger.Tx) error { // the presence of some workers
		workers, err := status.Workers{At: projection.Now(end), All: true}.Read(t.Context(), tx)
		for i, w := range workers {
			if err == nil && i%2 == 0 && w.State != status.Stopped {
				err = projection.PutPresence(tx, w.Worker, within())
			}
		}
		if err == nil {
			jobs, err = projection.List(t.Context(), tx, projection.Filter{})
		}
		return err
	}))
	moments := []string{"2026-03-15T00:30:00Z", "2026-03-15T01:10:00Z", "2026-03-15T02:00:00Z"}
	moments = ledgertest.Sample(moments, 3)
	for range ledgertest.Size(1, 1, 4) {
		moments = append(moments, within().Format(time.RFC3339Nano))
	}
	for i, moment := range append(moments, "pos:2000") {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i, ".db"))
		if code, _ := runAt(s.Store.DSN(), end.AddDate(0, 0, 1), "replay", "--as-of", moment, "--into",
			path); code != 0 {
			t.Fatalf("replay --as-of %s: exit %d", moment, code)
		}
		same := func(added []string, typed ...string) {
			t.Helper()
			wantCode, want := runAt(s.Store.DSN(), end.AddDate(0, 0, 1), append(typed, "--json", "--as-of", moment)...)
			gotCode, got := runAt(path, end.AddDate(1, 0, 0), append(typed, "--json")...)
			if wantCode == cli.ExitNothing && gotCode == cli.ExitNoJob {
				gotCode = wantCode
			}
			without := func(text string) []map[string]any { return without(t, text, added...) }
			if gotCode != wantCode || !reflect.DeepEqual(without(got), without(want)) {
				t.Errorf("%s of a copy as of %s: exit %d, want %d; got\n%swant\n%s", strings.Join(typed, " "), moment,
					gotCode, wantCode, got, want)
			}
		}
		same([]string{"now"}, "status")
		same(nil, "workers")
		same(nil, "workers", "--all")
		same(nil, "queues", "--paused")
		for range 10 {
			same([]string{"state_now"}, "why", string(jobs[random.IntN(len(jobs))].ID))
		}
	}
}
