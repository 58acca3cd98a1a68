package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/incident"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/keyframe"
	"jobledger/projection/status"
)

var (
	keptLedger = flag.String("large", "",
		"the large ledger of the benchmarks: made in this file by the first run, used again by the next")
	largeJobs = flag.Int("large-jobs", 200_000, "how many jobs it is made with; each has some five events")
)

// large is a ledger of one month: about 200,000 jobs in five queues, and 1,000,000 events, created with the
// ordinary commands. Of the processes, which have 20 names, 20 start every day and a half and never say that
// they ended.
type large struct {
	path       string
	store      *ledger.Store
	tail       int64
	begin, end time.Time
}

const (
	largeChunk  = 500
	largeDeploy = 20 // chunks, after which new processes start; the old ones never say that they ended
)

func openLarge(b *testing.B) *large {
	b.Helper()
	path := *keptLedger
	if path == "" {
		path = filepath.Join(b.TempDir(), "large.db")
	}
	_, err := os.Stat(path)
	g := &large{path: path, store: ledgertest.OpenAt(b, path)}
	if err != nil {
		g.make(b)
	}
	err = g.store.Read(b.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(b.Context(), ledger.Filter{Limit: 1}) {
			if err != nil {
				return err
			}
			g.begin = e.At
		}
		for e, err := range tx.Events(b.Context(), ledger.Filter{Limit: 1, Last: true}) {
			if err != nil {
				return err
			}
			g.tail, g.end = e.Pos, e.At
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	g.store.Now = func() time.Time { return g.end.Add(time.Second) }
	return g
}

// make lets the workers claim ready jobs, send heartbeats and finish, chunk by chunk, while producers enqueue
// more.
func (g *large) make(b *testing.B) {
	b.Helper()
	b.Logf("making %s", g.path)
	ctx, random := b.Context(), rand.New(rand.NewPCG(1, 2))
	now := ledgertest.Epoch
	g.store.Now = func() time.Time { return now }
	ids := 0
	service := &commands.Service{Store: g.store, NewID: func() string {
		ids++
		return fmt.Sprintf("01KDY9FY88TH%014d", ids)
	}}
	queues := []string{"mail", "web", "reports", "thumbs", "billing"}
	var workers []event.Worker
	start := func() { // the next 20 processes
		for i := range 20 {
			n := len(workers)
			workers = append(workers, event.Worker{Name: fmt.Sprintf("w%d", i),
				Boot: fmt.Sprintf("01KDY9FY88BT%014d", n), Host: "build7", PID: 4000 + n})
			if err := service.WorkerStarted(ctx, workers[n], queues, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	pause := 30 * 24 * time.Hour / time.Duration(*largeJobs/largeChunk) / 4
	zero, none := 0, time.Duration(0)
	var held []projection.Job
	all := func(steps []commands.Op) []projection.Job {
		outcomes, err := service.ApplyBatch(ctx, "worker:w0", steps)
		if err != nil {
			b.Fatal(err)
		}
		var jobs []projection.Job
		for _, o := range outcomes {
			if o.Err != nil {
				b.Fatal(o.Err)
			}
			jobs = append(jobs, o.Job)
		}
		return jobs
	}
	for round := range *largeJobs/largeChunk + 10 {
		if round%largeDeploy == 0 {
			start()
		}
		if round < *largeJobs/largeChunk {
			jobs := make([]commands.Enqueue, largeChunk)
			for i := range jobs {
				n := round*largeChunk + i
				jobs[i] = commands.Enqueue{Queue: queues[random.IntN(len(queues))],
					Payload: []byte(fmt.Sprintf(`{"invoice":%d}`, n)),
					Tags:    map[string]string{"customer": fmt.Sprint(n % 1000)}}
				if n%10 == 0 {
					jobs[i].Key = fmt.Sprintf("invoice-%d", n)
				}
				if n%20 == 0 {
					jobs[i].RunAt = now.Add(time.Duration(random.IntN(48)) * time.Hour)
				}
			}
			if _, err := service.Enqueue(ctx, "cli:ada@build7", jobs...); err != nil {
				b.Fatal(err)
			}
		}
		for beat := range 4 {
			now = now.Add(pause)
			if beat == 0 {
				for _, w := range workers[len(workers)-20:] {
					jobs, err := service.Claim(ctx, commands.ClaimRequest{Queues: queues, Worker: w, Lease: 12 * time.Hour,
						Limit: 25 + random.IntN(5)})
					if err != nil {
						b.Fatal(err)
					}
					held = append(held, jobs...)
				}
			} else if beat < 3 {
				var steps []commands.Op
				for i, j := range held {
					if i%12 != beat {
						steps = append(steps, commands.Op{Job: j, Command: commands.Heartbeat{Token: j.Token,
							Lease: 12 * time.Hour}})
					}
				}
				beaten := all(steps)
				rest := held[:0:0]
				for i, j := range held {
					if i%12 == beat {
						rest = append(rest, j)
					}
				}
				held = append(rest, beaten...)
			} else {
				random.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
				keep := min(100, len(held)/5)
				var steps []commands.Op
				for i, j := range held[keep:] {
					switch {
					case i%25 == 0:
						steps = append(steps, commands.Op{Job: j, Command: commands.Fail{Token: j.Token, Code: "smtp",
							RetryIn: &none}})
					case i%100 == 1:
						steps = append(steps, commands.Op{Job: j, Command: commands.Fail{Token: j.Token, Code: "bad",
							NoRetry: true}})
					default:
						steps = append(steps, commands.Op{Job: j, Command: commands.Succeed{Token: j.Token, ExitCode: &zero}})
					}
				}
				all(steps)
				held = held[:keep]
			}
		}
	}
}

// addKeyframes adds the keyframes that a sweeper would have added while the ledger was made.
func (g *large) addKeyframes(b *testing.B) {
	b.Helper()
	for added := 1; added > 0; {
		var err error
		if added, err = keyframe.Extend(b.Context(), g.store, keyframe.Every); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLarge runs the queries that follow an incident on a ledger of a million events. Run it with go
// test ./cmd/jobledger -run '^$' -bench Large [-large FILE].
func BenchmarkLarge(b *testing.B) {
	g := openLarge(b)
	b.Logf("%d events, %s to %s", g.tail, g.begin, g.end)
	ask := func(name string, fn func(ctx context.Context, tx *ledger.Tx) (int, error)) {
		b.Run(name, func(b *testing.B) {
			rows := 0
			for b.Loop() {
				err := g.store.Read(b.Context(), func(tx *ledger.Tx) (err error) {
					rows, err = fn(b.Context(), tx)
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows), "rows")
		})
	}
	span := g.end.Sub(g.begin)
	middle, late := g.begin.Add(span/2), g.end.Add(-span/100)
	window := func(ctx context.Context, tx *ledger.Tx, f attempts.Filter, from, to time.Time) (int,
		error) {
		var err error
		if f.From, err = projection.AtTime(ctx, tx, from); err != nil {
			return 0, err
		}
		if f.To, err = projection.AtTime(ctx, tx, to); err != nil {
			return 0, err
		}
		found, err := attempts.List(ctx, tx, f)
		return len(found), err
	}
	for _, at := range []struct {
		name string
		time time.Time
	}{{"middle", middle}, {"late", late}} {
		ask("attempts/worker/"+at.name, func(ctx context.Context, tx *ledger.Tx) (int, error) {
			return window(ctx, tx, attempts.Filter{Worker: "w7"}, at.time, at.time.Add(time.Hour))
		})
		ask("attempts/boot/"+at.name, func(ctx context.Context, tx *ledger.Tx) (int, error) {
			return window(ctx, tx, attempts.Filter{Worker: "01KDY9FY88BT00000000000007"}, at.time,
				at.time.Add(time.Hour))
		})
		ask("attempts/all/"+at.name, func(ctx context.Context, tx *ledger.Tx) (int, error) {
			return window(ctx, tx, attempts.Filter{}, at.time, at.time.Add(time.Hour))
		})
		ask("status/"+at.name, func(ctx context.Context, tx *ledger.Tx) (int, error) {
			m, err := projection.AtTime(ctx, tx, at.time)
			if err != nil {
				return 0, err
			}
			queues, err := status.Queues{At: m}.Read(ctx, tx)
			open := int64(0)
			for _, q := range queues {
				open += q.Jobs[event.Queued] + q.Jobs[event.ClaimedState] + q.Jobs[event.Running]
			}
			return int(open), err
		})
		ask("list/"+at.name, func(ctx context.Context, tx *ledger.Tx) (int, error) {
			m, err := projection.AtTime(ctx, tx, at.time)
			if err != nil {
				return 0, err
			}
			jobs, err := projection.ListAsOf(ctx, tx, projection.Filter{States: []event.State{event.Running},
				Limit: 50}, m)
			return len(jobs), err
		})
	}
	for _, at := range []struct {
		name string
		time time.Time
	}{{"middle", middle}, {"late", late}} {
		w := export.Window{From: at.time, To: at.time.Add(time.Hour)}
		err := g.store.Read(b.Context(), func(tx *ledger.Tx) (err error) {
			if w.After, err = tx.PosAt(b.Context(), w.From.Add(-time.Microsecond)); err == nil {
				w.Until, err = tx.PosAt(b.Context(), w.To)
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		walk := func(name string, fn func(ctx context.Context) error) {
			b.Run(name+"/"+at.name, func(b *testing.B) {
				for b.Loop() {
					if err := fn(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(w.Until-w.After), "rows")
			})
		}
		walk("export", func(ctx context.Context) error { return export.CSV(ctx, g.store, w, io.Discard) })
		walk("incident", func(ctx context.Context) error {
			_, err := incident.Investigate(ctx, g.store, w, g.end)
			return err
		})
	}
	ask("status/now", func(ctx context.Context, tx *ledger.Tx) (int, error) {
		queues, err := status.Queues{At: projection.Now(g.end)}.Read(ctx, tx)
		return len(queues), err
	})
	ask("attempts/open", func(ctx context.Context, tx *ledger.Tx) (int, error) {
		return window(ctx, tx, attempts.Filter{Outcomes: []event.Kind{0}}, time.Time{}, g.end)
	})
	ask("attempts/everything", func(ctx context.Context, tx *ledger.Tx) (int, error) {
		return window(ctx, tx, attempts.Filter{}, time.Time{}, g.end)
	})
	ask("attempts/overlap", func(ctx context.Context, tx *ledger.Tx) (int, error) {
		return window(ctx, tx, attempts.Filter{Overlap: true}, time.Time{}, g.end)
	})
	job := int64(0)
	ask("find", func(ctx context.Context, tx *ledger.Tx) (int, error) {
		jobs, err := projection.List(ctx, tx, projection.Filter{Before: g.tail / 2, Limit: 1})
		job = jobs[0].N
		return len(jobs), err
	})
	ask("history", func(ctx context.Context, tx *ledger.Tx) (int, error) {
		n := 0
		for _, err := range tx.Events(ctx, ledger.Filter{Job: job}) {
			if err != nil {
				return 0, err
			}
			n++
		}
		return n, nil
	})
	claimed := g.begin
	ask("attempts/job", func(ctx context.Context, tx *ledger.Tx) (int, error) {
		m, err := projection.AtTime(ctx, tx, g.end)
		if err != nil {
			return 0, err
		}
		found, err := attempts.List(ctx, tx, attempts.Filter{Job: job, To: m})
		if len(found) > 0 {
			claimed = found[0].ClaimedAt
		}
		return len(found), err
	})
	ask("owner", func(ctx context.Context, tx *ledger.Tx) (int, error) {
		m, err := projection.AtTime(ctx, tx, claimed)
		if err != nil {
			return 0, err
		}
		_, a, err := attempts.OwnerAt(ctx, tx, job, m)
		return a.Attempt, err
	})
	ask("why", func(ctx context.Context, tx *ledger.Tx) (int, error) {
		jobs, err := projection.List(ctx, tx, projection.Filter{States: []event.State{event.Queued}, Limit: 1})
		if err != nil {
			return 0, err
		}
		w, err := status.Explain(ctx, tx, jobs[0], projection.Now(g.end))
		return int(w.Ahead), err
	})
	ask("diff", func(ctx context.Context, tx *ledger.Tx) (int, error) {
		from, err := projection.AtTime(ctx, tx, middle)
		if err != nil {
			return 0, err
		}
		to, err := projection.AtTime(ctx, tx, middle.Add(24*time.Hour))
		if err != nil {
			return 0, err
		}
		_, err = status.Compare(ctx, tx, from, to, 5)
		return int(to.Pos - from.Pos), err
	})
}
