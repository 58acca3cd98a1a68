package commands_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// The length of the history of these benchmarks: go test ./commands -run '^$' -bench History -benchtime 1x
// -history 1000000. Run one benchmark per process to measure its peak memory.
var historyEvents = flag.Int("history", 100_000, "events of the history in the benchmarks")

// longHistory yields a history of jobs with five events each, of which a thousand are open at any time.
func longHistory(events int) iter.Seq2[event.Line, error] {
	return func(yield func(event.Line, error) bool) {
		const open = 1000
		var d dice = 1
		worker := event.Worker{Name: "alpha-mail", Boot: "01KKQ5T1RJ97EQV709HF20N79E", Host: "alpha", PID: 812}
		salt, at, pos := make([]byte, 16), ledgertest.Epoch, int64(0)
		type job struct {
			id   event.JobID
			step int
			n    int64
			salt []byte
		}
		jobs := make([]job, open)
		code := 0
		for i := 0; i < events; i++ {
			j := &jobs[i%open]
			at, pos = at.Add(50*time.Microsecond), pos+1
			if j.step == 0 {
				_, _ = d.Read(salt)
				*j = job{id: event.JobID(ulid.MustNew(ulid.Timestamp(at), &d).String()), n: pos,
					salt: append([]byte(nil), salt...)}
			}
			l := event.Line{Event: event.Event{Pos: pos, Job: j.id, Seq: int64(j.step + 1), At: at, Actor: "worker:" +
				worker.Name, Worker: worker,
				Token: "T" + string(j.id)[1:], Attempt: 1}}
			switch j.step {
			case 0:
				l.Salt, l.Body = j.salt, fmt.Appendf(nil, `{"to":"customer-%d@example.com","template":"invoice"}`,
					d.roll(1000))
				l.Event.Worker, l.Token, l.Attempt, l.To, l.Actor = event.Worker{}, "", 0, event.Queued, "cli:shop@web1"
				l.Event.Body = &event.Enqueued{Queue: "mail", RunAt: at, MaxAttempts: 5,
					PayloadSHA256: ledger.Digest(j.salt, l.Body), PayloadBytes: int64(len(l.Body)),
					Key: "k" + string(j.id), Tags: map[string]string{"customer": "17"}}
			case 1:
				l.From, l.To, l.Event.Body = event.Queued, event.ClaimedState,
					&event.Claimed{LeaseUntil: at.Add(time.Minute)}
			case 2, 3:
				l.From, l.To, l.Event.Body = event.Running, event.Running,
					&event.Heartbeat{LeaseUntil: at.Add(time.Minute)}
				if j.step == 2 {
					l.From = event.ClaimedState
				}
			case 4:
				l.Body = []byte("250 2.0.0 queued")
				l.From, l.To, l.Event.Body = event.Running, event.SucceededState,
					&event.Succeeded{ResultSHA256: ledger.Digest(j.salt, l.Body), ResultBytes: int64(len(l.Body)),
						ExitCode: &code}
			}
			j.step = (j.step + 1) % 5
			if !yield(l, nil) {
				return
			}
		}
	}
}

// longLedger returns a ledger with that history.
func longLedger(b *testing.B) *ledger.Store {
	b.Helper()
	store := openFast(b)
	if _, err := load.Import(b.Context(), &commands.Service{Store: store}, "cli:test", "bench",
		longHistory(*historyEvents), nil); err != nil {
		b.Fatal(err)
	}
	return store
}

// report reports the speed, and the peak memory of the process (Linux only).
func report(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(*historyEvents)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(0, "ns/op")
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		kib := 0
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			b.ReportMetric(float64(kib)/1024, "peak-MiB")
		}
	}
}

func BenchmarkHistoryImport(b *testing.B) {
	path := filepath.Join(b.TempDir(), "all.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for line := range longHistory(*historyEvents) {
		_, _ = w.Write(append(line.AppendJSON(nil), '\n'))
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	lines := func(yield func(event.Line, error) bool) {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			b.Fatal(err)
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			var l event.Line
			err := l.UnmarshalJSON(s.Bytes())
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
	for b.Loop() {
		b.StopTimer()
		store := openFast(b)
		b.StartTimer()
		if _, err := load.Import(b.Context(), &commands.Service{Store: store}, "cli:test", "bench", lines,
			nil); err != nil {
			b.Fatal(err)
		}
	}
	report(b)
}

func BenchmarkHistoryExport(b *testing.B) {
	store := longLedger(b)
	for b.Loop() {
		var text []byte
		for line, err := range store.Lines(b.Context(), ledger.Filter{}, true) {
			if err != nil {
				b.Fatal(err)
			}
			text = line.AppendJSON(text[:0])
		}
		_ = json.Valid(text)
	}
	report(b)
}

func BenchmarkHistoryReplay(b *testing.B) {
	store := longLedger(b)
	for b.Loop() {
		b.StopTimer()
		copied := openFast(b)
		b.StartTimer()
		if _, err := load.Replay(b.Context(), &commands.Service{Store: copied}, "cli:test", "bench",
			store.Lines(b.Context(), ledger.Filter{}, true), nil); err != nil {
			b.Fatal(err)
		}
	}
	report(b)
}
