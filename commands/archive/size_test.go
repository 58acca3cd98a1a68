package archive_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// longAgo yields the events of so many jobs that succeeded, of which one in ten ended in the last hour and
// the others half a year ago.
func longAgo(jobs int, now time.Time) iter.Seq2[event.Line, error] {
	return func(yield func(event.Line, error) bool) {
		at := now.Add(-180 * 24 * time.Hour)
		w := event.Worker{Name: "w1", Boot: "01KKQGAZ43CWGCX9CD0BRFPDBA", Host: "h", PID: 7}
		payload := []byte(`{"to":"ada@example.org","template":"welcome","n":"0123456789abcdef"}`)
		salt := []byte("0123456789abcdef")
		digest := ledger.Digest(salt, payload)
		zero := 0
		for n := range jobs {
			if n == jobs*9/10 {
				at = now.Add(-time.Hour)
			}
			at = at.Add(time.Millisecond).Truncate(time.Microsecond)
			id := event.JobID(ulid.MustNew(ulid.Timestamp(at), counted(2*n)).String())
			token := ulid.MustNew(ulid.Timestamp(at), counted(2*n+1)).String()
			key := ""
			if n%10 == 0 {
				key = fmt.Sprint("order ", n)
			}
			list := []event.Line{
				{Event: event.Event{Job: id, Seq: 1, At: at, Actor: "cli:shop", To: event.Queued, Body: &event.Enqueued{
					Queue: "mail", RunAt: at, MaxAttempts: 5, Key: key, PayloadSHA256: digest,
					PayloadBytes: int64(len(payload))}}, Salt: salt, Body: payload},
				{Event: event.Event{Job: id, Seq: 2, At: at, Actor: "worker:w1", Worker: w, Token: token, Attempt: 1,
					From: event.Queued, To: event.ClaimedState, Body: &event.Claimed{LeaseUntil: at.Add(time.Minute)}}},
				{Event: event.Event{Job: id, Seq: 3, At: at, Actor: "worker:w1", Worker: w, Token: token, Attempt: 1,
					From: event.ClaimedState, To: event.Running, Body: &event.Heartbeat{LeaseUntil: at.Add(time.Minute)}}},
				{Event: event.Event{Job: id, Seq: 4, At: at, Actor: "worker:w1", Worker: w, Token: token, Attempt: 1,
					From: event.Running, To: event.SucceededState, Body: &event.Succeeded{ExitCode: &zero}}},
			}
			for i := range list {
				list[i].Pos = int64(4*n + i + 1)
				if !yield(list[i], nil) {
					return
				}
			}
		}
	}
}

// counted is entropy that is another for each number.
type counted int

func (c counted) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(int(c) >> (8 * min(i, 7)))
	}
	return len(b), nil
}

var archivedJobs = flag.Int("archived-jobs", 0,
	"the jobs of the tests of sizes; default 1,500 in all and 200 a period, with -long 8,000 and 2,000")

// The file of a ledger of which nine in ten jobs are old is small once these have left, and everything is
// still there. With -long its log says what that takes.
func TestRemovalGivesSpaceBack(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	jobs := cmp.Or(*archivedJobs, ledgertest.Size(1500, 1500, 4000))
	path := filepath.Join(t.TempDir(), "jobs.db")
	store, err := ledger.Open(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := &commands.Service{Store: store, Staging: true}
	if _, err := load.Import(t.Context(), s, actor, "made", longAgo(jobs, time.Now()), nil); err != nil {
		t.Fatal(err)
	}
	s.Staging = false
	size := func() int64 {
		if _, err := store.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	whole := size()
	added := 0
	work := func() time.Duration { // a job from its enqueuing to its claim, as one of many workers
		added++
		_, err := s.Enqueue(t.Context(), "cli:shop", commands.Enqueue{Queue: "now", Payload: []byte("x")})
		began := time.Now()
		if err == nil {
			w := event.Worker{Name: "w2", Boot: "01KKQGAZ43CWGCX9CD0BRFPDBB", Host: "h", PID: 8}
			_, err = s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"now"}, Worker: w, Limit: 1})
		}
		if err != nil {
			t.Error(err)
		}
		return time.Since(began)
	}
	dir, began := path+archive.Suffix, time.Now()
	due, err := archive.Due(t.Context(), store, 90*24*time.Hour)
	for err == nil {
		_, err = archive.Close(t.Context(), s, due.Hi, archive.Options{Dir: dir, Actor: actor})
	}
	if !errors.Is(err, archive.ErrNothing) {
		t.Fatal(err)
	}
	closed := time.Since(began)
	began = time.Now()
	done := make(chan error, 1)
	m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: 90 * 24 * time.Hour}
	// What others do on the machine concerns the claims with and without a removal alike: they are measured by
	// turns. apart is when nothing is removed.
	var apart atomic.Bool
	turn := time.Now()
	go func() {
		_, err := m.All(t.Context(), func(event.Removed) {
			if time.Since(turn) > turns {
				apart.Store(true)
				time.Sleep(turns) // the claims of this time are those to compare with
				apart.Store(false)
				turn = time.Now()
			}
		})
		if err == nil {
			err = archive.Shrink(t.Context(), store)
		}
		done <- err
	}()
	beat := 20 * time.Millisecond
	if jobs >= 500_000 {
		beat = 100 * time.Millisecond // it lasts many minutes
	}
	var without, during []time.Duration
	figures := func() {
		t.Helper()
		t.Logf("claims while nothing is removed: %s; while jobs are: %s", quantiles(without), quantiles(during))
	}
	for ended, said := false, began; !ended; {
		if time.Since(said) > 5*time.Minute { // it may be more than the time of the test allows
			said = time.Now()
			figures()
		}
		select {
		case err := <-done:
			if ended = true; err != nil {
				t.Fatal(err)
			}
		default:
			alone := apart.Load()
			if d := work(); alone && apart.Load() {
				without = append(without, d)
			} else if !alone && !apart.Load() {
				during = append(during, d)
			}
			time.Sleep(beat) // so that the file has few jobs that are new
		}
	}
	removed := time.Since(began) // a half of it without a removal
	left := size()
	// Those that were added meanwhile take as much as each of the others did.
	news := whole * int64(added) / int64(jobs)
	t.Logf("%d jobs: closed in %s, removed in %s; the file had %d bytes, now %d (%.1f %%), of which the %d "+
		"jobs that came meanwhile take some %d", jobs, closed, removed, whole, left,
		100*float64(left)/float64(whole), added, news)
	figures()
	if jobs >= 100_000 && left > whole*15/100+news {
		t.Errorf("the file has %d of %d bytes, and %d of these are of new jobs", left, whole, news)
	}
	began = time.Now()
	var id string
	one := ledger.Filter{After: int64(2 * jobs), Until: int64(2*jobs + 1)}
	for l, err := range archive.Lines(t.Context(), store, dir, one) {
		if err != nil {
			t.Fatal(err)
		}
		id = string(l.Job)
	}
	found := time.Since(began)
	began = time.Now()
	events, _, err := archive.History(t.Context(), store, dir, id)
	if err != nil || len(events) != 4 {
		t.Errorf("the history of %s has %d events, %v", id, len(events), err)
	}
	t.Logf("an archived event by its position: %s; the history of its job: %s", found, time.Since(began))
	copyWhole(t, store, dir)
	again, err := s.Enqueue(t.Context(), "cli:shop", commands.Enqueue{Queue: "mail", Key: "order 10",
		Payload: []byte(`{"to":"ada@example.org","template":"welcome","n":"0123456789abcdef"}`)})
	if err != nil || !again[0].Existing {
		t.Errorf("the key is free: %+v, %v", again, err)
	}
	verify(t, store)
}

// copyWhole makes the whole copy from which questions about an archived moment are answered.
func copyWhole(t *testing.T, store *ledger.Store, dir string) {
	t.Helper()
	if *archivedJobs > 100_000 {
		return
	}
	began := time.Now()
	whole, err := archive.Reader{Store: store, Dir: dir}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	took := time.Since(began)
	var events int64
	err = whole.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		events, err = tx.Tail(t.Context())
		return err
	})
	t.Logf("a whole copy of %d events: %s, %s an event, %v", events, took,
		took/time.Duration(max(events, 1)), err)
}

// turns is for how long jobs are removed, and then are not.
const turns = 300 * time.Millisecond

func quantiles(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[int(q*float64(len(d)-1))].Round(time.Microsecond) }
	return fmt.Sprintf("%d, p50 %s, p99 %s, max %s", len(d), at(0.5), at(0.99), at(1))
}
