//go:build failpoint && unix

package failpoint

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// plan is what JOBLEDGER_FAILPOINT asks for.
type plan struct {
	step string
	nth  int64
	act  func()
	hits atomic.Int64
}

var planned = sync.OnceValue(func() *plan {
	text, action, _ := strings.Cut(os.Getenv("JOBLEDGER_FAILPOINT"), "=")
	step, nth, counted := strings.Cut(text, ":")
	p := &plan{step: step, nth: 1}
	var err error
	if counted {
		p.nth, err = strconv.ParseInt(nth, 10, 64)
	}
	switch action {
	case "", "kill":
		p.act = func() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until that has reached this thread
		}
	case "stop":
		p.act = func() {
			goesOn := make(chan os.Signal, 1)
			signal.Notify(goesOn, syscall.SIGCONT)
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			<-goesOn // likewise
		}
	default:
		var d time.Duration
		d, err = time.ParseDuration(action)
		p.act = func() { time.Sleep(d) }
	}
	if err != nil {
		panic(fmt.Sprintf("JOBLEDGER_FAILPOINT: %v", err))
	}
	return p
})

// Hit does what the environment asks for at this step.
func Hit(step string) {
	if p := planned(); p.step == step && p.hits.Add(1) == p.nth {
		p.act()
	}
}

// ahead says by how much the clock is ahead. A file is read each time.
var ahead = sync.OnceValue(func() func() time.Duration {
	text := os.Getenv("JOBLEDGER_CLOCK")
	if text == "" {
		return func() time.Duration { return 0 }
	}
	if d, err := time.ParseDuration(text); err == nil {
		return func() time.Duration { return d }
	}
	return func() time.Duration {
		content, err := os.ReadFile(text)
		d, parseErr := time.ParseDuration(strings.TrimSpace(string(content)))
		if err != nil || parseErr != nil {
			panic(fmt.Sprintf("JOBLEDGER_CLOCK: %v, %v", err, parseErr))
		}
		return d
	}
})

// Now returns the time by a clock that may be ahead.
func Now() time.Time { return time.Now().Add(ahead()()) }

// Shifted reports whether the clock is not the system's.
func Shifted() bool { return os.Getenv("JOBLEDGER_CLOCK") != "" }

// Statements returns the statements of sql one by one, so that a test can stop the program between them. Each
// ends with its line.
func Statements(sql string) []string { return strings.SplitAfter(strings.TrimSpace(sql), ";\n") }
