package lineartest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/ledgertest"
)

var histories = flag.Int("histories", 0,
	"how many histories of processes are checked for linearizability; default 2, with -short 1, with -long 10")

// linearProcess is the configuration of one process of a history.
type linearProcess struct {
	Path                 string
	Clock                linearClock
	Name                 string
	Seed                 uint64
	Jobs, Clients, Calls int
}

const linearEnv = "JOBLEDGER_TEST_LINEAR" // set in a process of a history: a linearProcess as JSON

// TestHistoriesAreLinearizable runs three processes with three goroutines each, which make every kind of call
// on the same few jobs. Every hundredth COMMIT fails with an unknown outcome, committed or not, and in every
// second history one of the processes is killed.
func TestHistoriesAreLinearizable(t *testing.T) {
	if text := os.Getenv(linearEnv); text != "" {
		var p linearProcess
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		p.run(t)
		return
	}
	rounds := *histories
	if rounds == 0 {
		rounds = ledgertest.Size(1, 2, 5)
	}
	counts := make(map[string]int)
	missing := func() string { // a kind of answer that was never given
		for _, answer := range []string{"enqueue", "claim", "claim none", "heartbeat", "heartbeat lost", "succeed",
			"succeed conflict", "fail", "release",
			"sweep", "cancel", "cancel conflict", "retry", "retry conflict", "get", "succeed unknown"} {
			if rounds >= 5 && counts[answer] == 0 {
				return answer
			}
		}
		return ""
	}
	// a rare one may take longer
	for round := 0; round < rounds || round < 4*rounds && missing() != ""; round++ {
		h := newHistory(t, 10)
		h.processes(3, 3, 150, round%2 == 1)
		h.end(counts)
		if t.Failed() {
			return
		}
	}
	t.Log(counts)
	if answer := missing(); answer != "" {
		t.Errorf("%q was never answered: these histories are too tame", answer)
	}
}

// processes runs n processes, and kills one of them half-way on request.
func (h *history) processes(n, clients, calls int, kill bool) {
	var group sync.WaitGroup
	for i := range n {
		text, err := json.Marshal(linearProcess{h.store.DSN(), h.clock, fmt.Sprint("p", i), rand.Uint64(), h.jobs,
			clients, calls})
		if err != nil {
			h.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(h.t.Context(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHistoriesAreLinearizable$", "-test.count=1")
		cmd.Env = append(os.Environ(), linearEnv+"="+string(text))
		var out, messages bytes.Buffer
		cmd.Stderr = &messages
		says, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			h.t.Fatal(err)
		}
		victim := kill && i == 0
		group.Go(func() {
			defer cancel()
			if victim {
				_, _ = io.CopyN(&out, says, 2000+rand.Int64N(60_000))
				_ = cmd.Process.Kill()
			}
			_, _ = io.Copy(&out, says)
			if err := cmd.Wait(); err != nil && !victim {
				h.t.Errorf("%v\n%s\n%.2000s", err, messages.Bytes(), out.Bytes())
			}
			h.take(i, out.Bytes())
		})
	}
	group.Wait()
}

// run is one process of a history.
func (p *linearProcess) run(t *testing.T) {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(p.Seed, 0))
	h := &history{t: t, clock: p.Clock}
	service := &commands.Service{}
	if strings.HasPrefix(p.Path, "postgres:") {
		c, through := commandstest.NewCutter(t, p.Path)
		service.Store = h.open(through)
		c.Every.Store(50)
	} else {
		path, _, _ := strings.Cut(strings.TrimPrefix(p.Path, "sqlite:"), "?")
		c := commandstest.ControlCommits(path)
		service.Store = h.open(p.Path)
		c.By(func() commandstest.CommitOutcome {
			mu.Lock()
			defer mu.Unlock()
			return []commandstest.CommitOutcome{commandstest.RolledBack, commandstest.Unacknowledged,
				commandstest.Acknowledged}[min(2, rng.IntN(200))]
		})
		defer c.By(nil)
	}
	report := &linearReport{to: os.Stdout}
	var group sync.WaitGroup
	for i := range p.Clients {
		client := newClient(asIs{service}, fmt.Sprint(p.Name, "-", i), p.Clock, report, p.Jobs, p.Seed+uint64(i))
		group.Go(func() {
			if err := client.run(t.Context(), p.Calls); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
