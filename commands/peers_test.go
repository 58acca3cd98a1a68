package commands_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/status"
)

// Each test reproduces a fault that was found in another queue. Its name states what holds here instead.

// lostAndReclaimed returns a job twice: as a held it until its lease ran out, and as b holds it now.
func lostAndReclaimed(t *testing.T) (q *queue, a, b projection.Job) {
	t.Helper()
	q = newQueue(t)
	q.enqueue(commands.Enqueue{Payload: []byte("p")})
	a = q.claimOne("a")
	q.Now = q.Now.Add(61 * time.Second)
	if lost := q.sweep(); len(lost) != 1 {
		t.Fatalf("%d jobs were taken back, want 1", len(lost))
	}
	q.Now = q.Now.Add(2 * time.Second)
	return q, a, q.claimOne("b")
}

// fresh reads the job.
func (q *queue) fresh(id event.JobID) (j projection.Job) {
	q.T.Helper()
	err := q.Store.Read(q.T.Context(), func(tx *ledger.Tx) error {
		var ok bool
		var err error
		if j, ok, err = projection.Get(q.T.Context(), tx, id); err == nil && !ok {
			err = commands.ErrNoJob
		}
		return err
	})
	if err != nil {
		q.T.Fatal(err)
	}
	return j
}

// attempts returns all claims of the ledger.
func (q *queue) attempts() (all []attempts.Attempt) {
	q.T.Helper()
	err := q.Store.Read(q.T.Context(), func(tx *ledger.Tx) error {
		now, err := projection.AtPos(q.T.Context(), tx, tailOf(q.T, tx))
		if err == nil {
			all, err = attempts.List(q.T.Context(), tx, attempts.Filter{To: now})
		}
		return err
	})
	if err != nil {
		q.T.Fatal(err)
	}
	return all
}

func tailOf(t testing.TB, tx *ledger.Tx) int64 {
	t.Helper()
	tail, err := tx.Tail(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tail
}

// River 0.43 on SQLite accepts the late completion of an old attempt as that of the newer one.
func TestPeersStaleAttemptCannotComplete(t *testing.T) {
	q, a, b := lostAndReclaimed(t)
	q.refuses(a, commands.Succeed{Token: a.Token, Result: []byte("late")}, commands.ErrLeaseLost)
	if j := q.fresh(a.ID); j.State != event.ClaimedState || j.Token != b.Token || j.Worker.Name != "b" ||
		j.Attempt != 2 {
		t.Errorf("the newer attempt is not what it was: %+v", j)
	}
}

// River then loses the error of the newer attempt, which is reported after that.
func TestPeersNewerErrorSurvivesStaleCompletion(t *testing.T) {
	q, a, b := lostAndReclaimed(t)
	q.refuses(a, commands.Succeed{Token: a.Token}, commands.ErrLeaseLost)
	j := q.do(b, commands.Fail{Token: b.Token, Code: "smtp", Detail: "no route to host"})
	if j.State != event.Queued || j.Failures != 2 || j.ErrorCode != "smtp" ||
		j.ErrorDetail != "no route to host" || !j.RunAt.After(q.Now) {
		t.Errorf("the failure of the newer attempt: %+v", j)
	}
	want := []string{"enqueued", "claimed", "reclaimed", "claimed", "refused", "failed"}
	if got := q.kinds(a.ID); !slices.Equal(got, want) {
		t.Errorf("events: got %v, want %v", got, want)
	}
}

// River's rescuer makes a job retryable again that was completed between the rescuer's read and its write.
func TestPeersSweepSkipsJobThatEndsMeanwhile(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	j := q.claimOne("slow")
	q.Now = q.Now.Add(2 * time.Minute)

	other := ledgertest.OpenAt(t, q.Store.DSN()) // the store of the process that completes the job
	other.Now = func() time.Time { return q.Now }
	holding, looked, completed := make(chan struct{}), make(chan struct{}), make(chan error)
	hold := sync.OnceFunc(func() { close(holding) }) // a function may run more than once
	go func() {
		completed <- other.Write(t.Context(), func(tx *ledger.Tx) error {
			hold()
			<-looked
			return complete(t.Context(), tx, j)
		})
	}()
	<-holding
	var once sync.Once
	q.Store.Now = func() time.Time {
		// The first reading of the clock belongs to the read of the sweep, which sees an expired lease, because
		// nothing is committed yet.
		once.Do(func() { time.AfterFunc(50*time.Millisecond, func() { close(looked) }) })
		return q.Now
	}
	if lost := q.sweep(); len(lost) != 0 {
		t.Errorf("taken back although it has ended: %+v", lost)
	}
	if err := <-completed; err != nil {
		t.Fatal(err)
	}
	if j := q.fresh(j.ID); j.State != event.SucceededState {
		t.Errorf("the job is %s", j.State)
	}
	if got := q.kinds(j.ID); !slices.Equal(got, []string{"enqueued", "claimed", "succeeded"}) {
		t.Errorf("events: %v", got)
	}
}

// complete does what Succeed does, in a transaction of the test.
func complete(ctx context.Context, tx *ledger.Tx, j projection.Job) error {
	_, err := commands.ApplyTo(ctx, tx, "worker:slow", j, commands.Succeed{Token: j.Token})
	return err
}

// In goqite, Delete or Extend by a receiver that was too slow applies to the message that another receiver
// has by now.
func TestPeersStaleOwnerChangesNothing(t *testing.T) {
	q, a, b := lostAndReclaimed(t)
	for _, c := range []commands.Command{
		commands.Heartbeat{Token: a.Token, Lease: time.Hour}, commands.Succeed{Token: a.Token},
		commands.Fail{Token: a.Token, NoRetry: true},
		commands.Release{Token: a.Token, Delay: time.Hour},
	} {
		q.refuses(a, c, commands.ErrLeaseLost)
		// from its own old copy of the job
		out, err := q.ApplyBatch(t.Context(), "worker:a", []commands.Op{{Job: a, Command: c}})
		if err != nil || !errors.Is(out[0].Err, commands.ErrLeaseLost) {
			t.Errorf("%T by a stale copy: %+v, %v", c, out, err)
		}
		if j := q.fresh(b.ID); j.Seq != b.Seq || j.State != b.State || j.Token != b.Token ||
			!j.LeaseUntil.Equal(b.LeaseUntil) || !j.HeartbeatAt.Equal(b.HeartbeatAt) {
			t.Errorf("%T: the claim of b was %+v, and is %+v", c, b, j)
		}
	}
	if j := q.do(b, commands.Succeed{Token: b.Token}); j.State != event.SucceededState || j.Worker.Name != "b" {
		t.Errorf("b can end its own: %+v", j)
	}
}

// In goqite, a message that was received as often as allowed stays in the table for ever, and nothing reports
// it.
func TestPeersExhaustedJobIsSeenAndCanBeRetried(t *testing.T) {
	q := newQueue(t)
	j := q.enqueue(commands.Enqueue{MaxAttempts: 3})
	for n := range 3 {
		q.claimOne(fmt.Sprint("killed-", n))
		q.Now = q.Now.Add(2 * time.Minute)
		if lost := q.sweep(); len(lost) != 1 {
			t.Fatalf("%d jobs were taken back, want 1", len(lost))
		}
		q.Now = q.Now.Add(time.Hour)
	}
	var listed []projection.Job
	var queues []status.Queue
	err := q.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		if listed, err = projection.List(t.Context(), tx,
			projection.Filter{States: []event.State{event.FailedState}}); err != nil {
			return err
		}
		queues, err = status.Queues{At: projection.Now(q.Now)}.Read(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(listed) != 1 || listed[0].ID != j.ID || listed[0].ErrorCode != event.LeaseExpired ||
		listed[0].Failures != 3 || listed[0].FinishedAt.IsZero() {
		t.Errorf("listed as failed: %+v", listed)
	}
	if len(queues) != 1 || queues[0].Jobs[event.FailedState] != 1 {
		t.Errorf("counted: %+v", queues)
	}
	if more := q.claim("next"); len(more) != 0 {
		t.Fatalf("claimed a fourth time: %+v", more)
	}
	q.do(j, commands.Retry{Reason: "the worker is repaired"})
	if j = q.claimOne("next"); j.Attempt != 4 || j.Failures != 0 {
		t.Errorf("retried: %+v", j)
	}
}

const peersFile = "JOBLEDGER_TEST_PEERS" // the ledger, if this process is one of the two that share it

// backlite runs jobs twice if two processes share one file: 3,703 of 24,000 in one measurement.
func TestPeersTwoProcessesRunNoJobTwice(t *testing.T) {
	if path := os.Getenv(peersFile); path != "" {
		if err := workOff(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		return
	}
	jobs := ledgertest.Size(100, 300, 600)
	q := newQueue(t)
	batch := make([]commands.Enqueue, jobs)
	for i := range batch {
		batch[i] = commands.Enqueue{Queue: "mail"}
	}
	if _, err := q.Enqueue(t.Context(), "cli:test", batch...); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var printed [2]bytes.Buffer
	for i := range printed {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPeersTwoProcessesRunNoJobTwice$",
			"-test.count=1")
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), peersFile+"="+q.Store.DSN()), &printed[i],
			&printed[i]
		group.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("%v\n%s", err, printed[i].Bytes())
			}
		})
	}
	group.Wait()
	ran := make(map[string]int)
	for i := range printed {
		for line := range strings.Lines(printed[i].String()) {
			if job, is := strings.CutPrefix(line, "ran "); is {
				ran[job]++
			}
		}
	}
	if len(ran) != jobs {
		t.Errorf("%d of %d jobs were run", len(ran), jobs)
	}
	for job, times := range ran {
		if times != 1 {
			t.Errorf("job %s was run %d times", strings.TrimSpace(job), times)
		}
	}
	if all := q.attempts(); len(all) != jobs {
		t.Errorf("%d claims of %d jobs", len(all), jobs)
	}
}

// workOff claims, "runs" and completes jobs with several workers until none is left.
func workOff(ctx context.Context, path string) error {
	store, err := ledger.Open(ctx, path)
	if err != nil {
		return err
	}
	defer store.Close()
	s := &commands.Service{Store: store}
	var clients sync.WaitGroup
	failed := make(chan error, 4)
	for i := range cap(failed) {
		clients.Go(func() {
			who := event.Worker{Name: fmt.Sprint("w", os.Getpid(), "-", i), Boot: fmt.Sprint(os.Getpid(), "-", i),
				PID: os.Getpid()}
			var steps []commands.Op
			for {
				_, jobs, err := s.ApplyAndClaim(ctx, "worker:"+who.Name, steps,
					commands.ClaimRequest{Queues: []string{"mail"}, Worker: who, Limit: 3})
				if err != nil || len(jobs) == 0 {
					failed <- err
					return
				}
				steps = steps[:0]
				for _, j := range jobs {
					fmt.Printf("ran %s\n", j.ID)
					steps = append(steps, commands.Op{Job: j, Command: commands.Succeed{Token: j.Token}})
				}
			}
		})
	}
	clients.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// liteq gives the same job to three concurrent claimers.
func TestPeersOneJobGoesToOneClaimer(t *testing.T) {
	q := newQueue(t)
	services := []*commands.Service{q.Service}
	for range 2 {
		store := ledgertest.OpenAt(t, q.Store.DSN()) // as another process
		store.Now = func() time.Time { return q.Now }
		services = append(services, &commands.Service{Store: store})
	}
	for range 20 {
		j := q.enqueue(commands.Enqueue{})
		var takers sync.WaitGroup
		start, got := make(chan struct{}), make(chan projection.Job, 100)
		for i := range 24 {
			takers.Go(func() {
				<-start
				jobs, err := services[i%3].Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
					Worker: worker(fmt.Sprint("w", i))})
				if err != nil {
					t.Error(err)
				}
				for _, j := range jobs {
					got <- j
				}
			})
		}
		close(start)
		takers.Wait()
		close(got)
		var owners []string
		for taken := range got {
			if owners = append(owners, taken.Worker.Name); taken.ID != j.ID {
				t.Errorf("claimed %s, want %s", taken.ID, j.ID)
			}
		}
		if len(owners) != 1 {
			t.Fatalf("job %s went to %v", j.ID, owners)
		}
		if now := q.fresh(j.ID); now.Worker.Name != owners[0] || now.Attempt != 1 {
			t.Errorf("it went to %s, and the ledger says %+v", owners[0], now)
		}
	}
}

// Oban's rescue leaves no trace in the row of who had the job, since when, and that it was reclaimed.
func TestPeersReclaimedNamesOwnerAndTime(t *testing.T) {
	q := newQueue(t)
	j := q.enqueue(commands.Enqueue{})
	q.Now = q.Now.Add(time.Minute)
	claimed := q.claimOne("lost")
	q.Now = q.Now.Add(20 * time.Second)
	q.do(claimed, beat(claimed.Token))
	q.Now = q.Now.Add(10 * time.Minute)
	q.sweep()
	if row := q.fresh(j.ID); row.State != event.Queued || row.Attempt != 1 || row.Failures != 1 ||
		row.ErrorCode != event.LeaseExpired || !row.RunAt.Equal(q.Now) {
		t.Errorf("the row: %+v", row)
	}
	all := q.attempts()
	if len(all) != 1 || all[0].Worker != claimed.Worker || !all[0].ClaimedAt.Equal(claimed.ClaimedAt) ||
		all[0].Outcome != event.KindReclaimed {
		t.Errorf("the claim: %+v", all)
	}
	events, _ := q.events(claimed)
	if e := events[len(events)-1]; e.Kind() != event.KindReclaimed || e.Worker != claimed.Worker ||
		e.Token != claimed.Token || e.Attempt != 1 || e.Actor != "sweeper:test" {
		t.Errorf("the event: %+v", e)
	}
}

// Procrastinate logs a reclaimed job as an ordinary retry.
func TestPeersReclaimIsNoOrdinaryRetry(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{ID: id(1)})
	q.enqueue(commands.Enqueue{ID: id(2)})
	failed, lost := q.claimOne("w"), q.claimOne("w")
	q.do(failed, commands.Fail{Token: failed.Token})
	q.Now = q.Now.Add(2 * time.Minute)
	q.sweep()
	for job, want := range map[event.JobID]string{failed.ID: "failed", lost.ID: "reclaimed"} {
		if got := q.kinds(job); !slices.Equal(got, []string{"enqueued", "claimed", want}) {
			t.Errorf("events: got %v, want the last to be %s", got, want)
		}
		if j := q.fresh(job); j.State != event.Queued || j.Failures != 1 ||
			(j.ErrorCode == event.LeaseExpired) != (want == "reclaimed") {
			t.Errorf("%s: %+v", want, j)
		}
	}
	outcomes := map[event.JobID]event.Kind{}
	for _, a := range q.attempts() {
		outcomes[a.Job] = a.Outcome
	}
	if outcomes[failed.ID] != event.KindFailed || outcomes[lost.ID] != event.KindReclaimed {
		t.Errorf("outcomes: %v", outcomes)
	}
}

// GoodJob and pueue record an end time for jobs they find dead, as if the end had been observed.
func TestPeersLostClaimHasNoInventedEnd(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	j := q.claimOne("lost")
	q.Now = q.Now.Add(25 * time.Second)
	j = q.do(j, beat(j.Token))
	seen, leaseEnd := q.Now, j.LeaseUntil
	q.Now = q.Now.Add(24 * time.Hour) // no sweeper runs for a day
	q.sweep()
	events, _ := q.events(j)
	e := events[len(events)-1]
	b, ok := e.Body.(*event.Reclaimed)
	if !ok || !b.LastHeartbeat.Equal(seen) || !b.LeaseUntil.Equal(leaseEnd) || !e.At.Equal(q.Now) {
		t.Errorf(
			"three facts, each its own: %+v at %s; want the last heartbeat %s, the end of the lease %s, and now %s",
			e.Body, e.At, seen, leaseEnd, q.Now)
	}
	if row := q.fresh(j.ID); !row.FinishedAt.IsZero() {
		t.Errorf("the job has not finished, and finished_at is %s", row.FinishedAt)
	}
	all := q.attempts()
	if len(all) != 1 || !all[0].LastHeartbeat.Equal(seen) || !all[0].EndedAt.Equal(e.At) {
		t.Errorf("the claim ended when it was taken back, and was last seen before: %+v", all)
	}
	err := q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		workers, err := status.Workers{At: projection.Now(q.Now), All: true}.Read(t.Context(), tx)
		for _, w := range workers {
			if !w.StoppedAt.IsZero() {
				t.Errorf("worker %s was not seen to stop, and is reported as stopped at %s", w.Name, w.StoppedAt)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// No other queue records that the late write of a zombie was refused, or what it would have written.
func TestPeersRefusedWriteRecordsWhatItOffered(t *testing.T) {
	q, a, b := lostAndReclaimed(t)
	q.Now = q.Now.Add(time.Second)
	for range 3 { // it tries three times
		q.refuses(a, commands.Succeed{Token: a.Token, Result: []byte("sent twice?")}, commands.ErrLeaseLost)
	}
	_, refused := q.events(a)
	if len(refused) != 1 {
		t.Fatalf("%d events for one refused write", len(refused))
	}
	e := refused[0]
	body := e.Body.(*event.Refused)
	if e.Worker != a.Worker || e.Token != a.Token || e.Attempt != 1 || e.Seq != 0 || !e.At.Equal(q.Now) ||
		e.Actor != "worker:zombie" {
		t.Errorf("whose write it was: %+v", e)
	}
	if body.Command != "succeed" || !strings.Contains(body.Why, "sweeper:test reclaimed it") ||
		body.OfferedBytes != 11 || body.OfferedSHA256 != ledger.Digest(b.Salt, []byte("sent twice?")) {
		t.Errorf("what was refused and why: %+v", body)
	}
	if j := q.fresh(a.ID); j.Seq != b.Seq {
		t.Errorf("a refused write has changed the job: %+v", j)
	}
}
