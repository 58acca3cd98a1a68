//go:build unix

package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// listener is a worker process that prints the start of each job, until its stdin ends. Then it prints how
// much processor time it used.
func listener(path string) {
	store, err := ledger.Open(context.Background(), path)
	if err != nil {
		panic(err)
	}
	w := &Worker{Service: &commands.Service{Store: store}, Queues: []string{"mail"},
		Process: event.Worker{Name: "listener", Boot: "b"},
		Handler: HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
			now := time.Now()
			fmt.Printf("%s %d\n", job.Payload, now.UnixNano())
			return nil, nil
		})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := w.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	time.Sleep(300 * time.Millisecond) // after the start, so that it is idle
	began, before := time.Now(), processorTime()
	fmt.Println("idle 0")
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Printf("share %d\n", int64(float64(processorTime()-before)/float64(time.Since(began))*1e6))
	w.Stop()
	<-ended
	_ = store.Close()
	os.Exit(0)
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// listening is a running listener process.
type listening struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan [2]string
}

func startListener(t testing.TB, path string) *listening {
	t.Helper()
	l := &listening{t: t, cmd: exec.Command(self(), "listener", path), lines: make(chan [2]string, 100)}
	l.cmd.Stderr = os.Stderr
	stdin, err := l.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l.stdin = stdin
	go func() {
		defer close(l.lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			word, number, _ := strings.Cut(scanner.Text(), " ")
			l.lines <- [2]string{word, number}
		}
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = l.cmd.Process.Kill()
		_ = l.cmd.Wait()
	})
	l.number("idle")
	return l
}

// number waits for the line that begins with word, and returns its number.
func (l *listening) number(word string) int64 {
	l.t.Helper()
	select {
	case line := <-l.lines:
		n, err := strconv.ParseInt(line[1], 10, 64)
		if err != nil || line[0] != word {
			l.t.Fatalf("the listener said %q, want %s", line, word)
		}
		return n
	case <-time.After(20 * time.Second):
		l.t.Fatalf("the listener does not say %s", word)
	}
	return 0
}

// latencies reports when work started, relative to the time before and after enqueueing.
func latencies(b *testing.B, fromCall, fromCommit []time.Duration) {
	for name, list := range map[string][]time.Duration{"call": fromCall, "commit": fromCommit} {
		slices.Sort(list)
		for _, p := range []int{50, 99} {
			at := list[(len(list)-1)*p/100]
			b.ReportMetric(float64(at.Microseconds())/1000, fmt.Sprintf("ms-p%d-from-%s", p, name))
		}
	}
}

// BenchmarkWake measures the time from enqueueing a job to the start of its work, one job at a time, with an
// idle worker.
func BenchmarkWake(b *testing.B) {
	run := func(b *testing.B, service *commands.Service, begun func(i int) time.Time) {
		var fromCall, fromCommit []time.Duration
		for i := 0; b.Loop(); i++ {
			time.Sleep(2 * time.Millisecond) // the worker is idle again
			call := time.Now()
			job := commands.Enqueue{Queue: "mail", Payload: []byte(strconv.Itoa(i))}
			if _, err := service.Enqueue(b.Context(), "bench", job); err != nil {
				b.Fatal(err)
			}
			commit := time.Now()
			at := begun(i)
			fromCall, fromCommit = append(fromCall, at.Sub(call)), append(fromCommit, at.Sub(commit))
		}
		latencies(b, fromCall, fromCommit)
	}
	b.Run("same-process", func(b *testing.B) {
		service := &commands.Service{Store: ledgertest.Open(b)}
		began := make(chan time.Time, 1)
		w := &Worker{Service: service, Process: event.Worker{Name: "w", Boot: "b"}, Queues: []string{"mail"},
			Handler: HandlerFunc(func(context.Context, projection.Job) ([]byte, error) {
				began <- time.Now()
				return nil, nil
			})}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = w.Run(context.Background())
		}()
		run(b, service, func(int) time.Time { return <-began })
		w.Stop()
		<-ended
	})
	for name, quiet := range map[string]bool{"other-process": false, "other-process-without-doorbell": true} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "jobs.db")
			if quiet {
				disableDoorbell(b, path)
			}
			service := &commands.Service{Store: ledgertest.OpenAt(b, path)}
			l := startListener(b, path)
			run(b, service, func(i int) time.Time { return time.Unix(0, l.number(strconv.Itoa(i))) })
		})
	}
}

// BenchmarkIdle measures the processor time of an idle worker process; one op is a second.
func BenchmarkIdle(b *testing.B) {
	for name, quiet := range map[string]bool{"doorbell": false, "without-doorbell": true} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "jobs.db")
			if quiet {
				disableDoorbell(b, path)
			}
			service := &commands.Service{Store: ledgertest.OpenAt(b, path)}
			later := commands.Enqueue{Queue: "mail", RunAt: time.Now().Add(time.Hour)}
			if _, err := service.Enqueue(b.Context(), "bench", commands.Enqueue{Queue: "sms"}, later); err != nil {
				b.Fatal(err)
			}
			l := startListener(b, path)
			for b.Loop() {
				time.Sleep(time.Second) // the benchmark measures an idle second
			}
			_ = l.stdin.Close()
			b.ReportMetric(float64(l.number("share"))/1e4, "%cpu")
		})
	}
}

// disableDoorbell makes it impossible to create the doorbell.
func disableDoorbell(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path+".bell", nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
