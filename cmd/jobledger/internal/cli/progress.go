package cli

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows on a terminal how far a long command has come. Everywhere else it is silent; logs and
// pipes want no bars. A nil progress is silent too.
type Progress struct {
	bar *progressbar.ProgressBar
}

// StartProgress begins a bar of total steps on stderr; with total -1, when nobody knows, a counter.
// The caller ends it with done, before it prints anything else.
func (p *Program) StartProgress(what string, total int64) *Progress {
	if !p.StderrTerminal || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &Progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(p.Stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // it would start a goroutine that nobody waits for
		progressbar.OptionClearOnFinish(),
	)}
}

// Add notes that n more steps are done. What the bar itself cannot write is of no interest.
func (g *Progress) Add(n int) {
	if g != nil {
		_ = g.bar.Add(n)
	}
}

// To returns a function that reports how many steps are done in all. A lower number than before means that the work has
// started again.
func (g *Progress) To() func(done int64) {
	before := int64(0)
	return func(done int64) {
		if done < before {
			before = 0
		}
		g.Add(int(done - before))
		before = done
	}
}

// Done takes the bar off the screen. It may be called more than once.
func (g *Progress) Done() {
	if g != nil && !g.bar.IsFinished() {
		_ = g.bar.Finish()
	}
}
