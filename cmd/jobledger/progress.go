package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows on a terminal how far a long command has come. Everywhere else it is silent; logs and
// pipes want no bars. A nil progress is silent too.
type progress struct {
	bar *progressbar.ProgressBar
}

// startProgress begins a bar of total steps on stderr; with total -1, when nobody knows, a counter.
// The caller ends it with done, before it prints anything else.
func (p *program) startProgress(what string, total int64) *progress {
	if !p.stderrTerminal || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(p.stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // it would start a goroutine that nobody waits for
		progressbar.OptionClearOnFinish(),
	)}
}

// add notes that n more steps are done. What the bar itself cannot write is of no interest.
func (g *progress) add(n int) {
	if g != nil {
		_ = g.bar.Add(n)
	}
}

// to returns a function that reports how many steps are done in all. A lower number than before means that the work has
// started again.
func (g *progress) to() func(done int64) {
	before := int64(0)
	return func(done int64) {
		if done < before {
			before = 0
		}
		g.add(int(done - before))
		before = done
	}
}

// done takes the bar off the screen. It may be called more than once.
func (g *progress) done() {
	if g != nil && !g.bar.IsFinished() {
		_ = g.bar.Finish()
	}
}
