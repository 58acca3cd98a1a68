package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/files"
	"jobledger/commands"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

// BenchmarkLargeWhole runs the operations that read a whole ledger, with a million events. Run it with go
// test ./cmd/jobledger -run '^$' -bench LargeWhole -benchtime 1x [-large FILE].
func BenchmarkLargeWhole(b *testing.B) {
	g := openLarge(b)
	b.Logf("%d events", g.tail)
	run := func(name string, events int64, fn func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			defer cli.TuneGC()()
			fn(b)
			b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(peakMemory(), "peak-MiB") // of this process, so far
		})
	}
	verify := func(b *testing.B, since int64) {
		for b.Loop() {
			v, err := audit.VerifyStore(b.Context(), g.store, since, nil)
			if err != nil || len(v.Findings) > 0 {
				b.Fatal(err, v.Findings)
			}
		}
	}
	run("verify", g.tail, func(b *testing.B) { verify(b, 0) })
	run("verify/since", 10_000, func(b *testing.B) { verify(b, g.tail-10_000) })
	run("rebuild", g.tail, g.rebuild)
	file := filepath.Join(b.TempDir(), "large.jsonl")
	run("export", g.tail, func(b *testing.B) {
		for b.Loop() {
			g.export(b, file)
		}
	})
	run("import", g.tail, func(b *testing.B) {
		content, err := os.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		defer content.Close()
		info, err := content.Stat()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			service := &commands.Service{Store: ledgertest.OpenAt(b, filepath.Join(b.TempDir(), "import.db")),
				Staging: true}
			if _, err := load.Import(b.Context(), service, "cli:test", "large.jsonl",
				files.Lines(io.NewSectionReader(content, 0, info.Size())), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	run("replay", g.tail, func(b *testing.B) {
		for b.Loop() {
			service := &commands.Service{Store: ledgertest.OpenAt(b, filepath.Join(b.TempDir(), "replay.db"))}
			lines := g.store.Lines(b.Context(), ledger.Filter{Until: g.tail}, true)
			done, err := load.Replay(b.Context(), service, "cli:test", g.path, lines, nil)
			if err != nil || len(done.Findings) > 0 {
				b.Fatal(err, done.Findings)
			}
		}
	})
}

func (g *large) export(b *testing.B, path string) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	n, err := export.Lines(b.Context(), g.store, export.Window{Until: g.tail}, export.LinesOptions{Bodies: true},
		w)
	if err == nil {
		err = w.Flush()
	}
	if err != nil || n != g.tail {
		b.Fatal(n, err)
	}
}

// rebuild repairs a copy in which 1,000 rows are wrong, and reports the longest time for which another writer
// waited.
func (g *large) rebuild(b *testing.B) {
	path := filepath.Join(b.TempDir(), "damaged.db")
	if _, err := g.store.Vacuum(b.Context(), path); err != nil {
		b.Fatal(err)
	}
	service, other := &commands.Service{Store: ledgertest.OpenAt(b,
		path)}, &commands.Service{Store: ledgertest.OpenAt(b, path)}
	worst := time.Duration(0)
	for b.Loop() {
		b.StopTimer()
		err := service.Store.Write(b.Context(), func(tx *ledger.Tx) error {
			_, err := tx.Exec(`UPDATE jobs SET priority = 99 - priority WHERE n % 1000 < 5`)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		var end atomic.Bool
		waited := make(chan time.Duration)
		go func() { waited <- longestWait(b.Context(), other, &end) }()
		b.StartTimer()
		r, err := service.Rebuild(b.Context(), "cli:test")
		if err != nil || r.Changed == 0 {
			b.Fatal(r, err)
		}
		end.Store(true)
		worst = max(worst, <-waited)
	}
	b.ReportMetric(float64(worst.Milliseconds()), "lock-ms")
}

// longestWait writes repeatedly and returns the longest time that a write took.
func longestWait(ctx context.Context, s *commands.Service, end *atomic.Bool) (worst time.Duration) {
	w := event.Worker{Name: "other", Boot: "01KDY9FY88BT00000000000099"}
	for !end.Load() {
		start := time.Now()
		if err := s.Present(ctx, w); err != nil {
			return 0
		}
		worst = max(worst, time.Since(start))
		time.Sleep(time.Millisecond) // pause between two measurements
	}
	return worst
}

// peakMemory returns the peak memory of this process in MiB, or 0 if the system does not report it.
func peakMemory() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		kib := 0
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return float64(kib) / 1024
		}
	}
	return 0
}

// BenchmarkLargeWriters measures how many jobs a second one process enqueues and finishes in a large ledger:
// alone, next to a check of all of it, and next to one that rests. Run it as [BenchmarkLargeWhole].
func BenchmarkLargeWriters(b *testing.B) {
	g := openLarge(b)
	copied := filepath.Join(b.TempDir(), "copy.db")
	if err := ledger.CopyFile(b.Context(), g.path, copied); err != nil {
		b.Fatal(err)
	}
	store := ledgertest.OpenAt(b, copied)
	service := &commands.Service{Store: store}
	type check func(context.Context, *ledger.Store, int64, func(done, total int64)) (audit.Verified, error)
	for _, next := range []struct {
		name  string
		check check
	}{{"alone", nil}, {"verify", audit.VerifyStore}, {"paced", audit.VerifyPaced}} {
		b.Run(next.name, func(b *testing.B) {
			ctx, stop := context.WithCancel(b.Context())
			ended := make(chan time.Duration, 1)
			go func() {
				began := time.Now()
				if next.check != nil {
					if v, err := next.check(b.Context(), store, 0, nil); err != nil || len(v.Findings) > 0 {
						b.Error(err, v.Findings)
					}
				} else {
					time.Sleep(5 * time.Second)
				}
				ended <- time.Since(began)
				stop()
			}()
			jobs := 0
			for ctx.Err() == nil {
				made, err := service.Enqueue(b.Context(), "cli:bench", commands.Enqueue{Queue: "bench"})
				if err != nil {
					b.Fatal(err)
				}
				claimed, err := service.Claim(b.Context(), commands.ClaimRequest{Queues: []string{"bench"},
					Worker: event.Worker{Name: "w", Boot: "boot-w", Host: "h", PID: 7}})
				if err != nil || len(claimed) != 1 || claimed[0].ID != made[0].ID {
					b.Fatal(err, claimed)
				}
				if _, err := service.Apply(b.Context(), "cli:bench", claimed[0].ID,
					commands.Succeed{Token: claimed[0].Token}); err != nil {
					b.Fatal(err)
				}
				jobs++
			}
			took := <-ended
			b.ReportMetric(float64(jobs)/took.Seconds(), "jobs/s")
			b.ReportMetric(took.Seconds(), "s")
		})
	}
}
