package cli

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows on a terminal how far a long command has come. Elsewhere it prints nothing, and so does a
// nil Progress.
type Progress struct {
	bar *progressbar.ProgressBar
}

// StartProgress starts a bar of total steps on a terminal, or a counter if total is -1, for unknown. The
// caller ends it with Done before it prints anything else. A dumb terminal gets none.
func StartProgress(to io.Writer, what string, total int64) *Progress {
	if os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &Progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(to),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // it would start a goroutine that is never waited for
		progressbar.OptionClearOnFinish(),
	)}
}

// Add counts n more steps. Errors of writing the bar are ignored.
func (g *Progress) Add(n int) {
	if g != nil {
		_ = g.bar.Add(n)
	}
}

// Say changes what the bar is about.
func (g *Progress) Say(what string) {
	if g != nil {
		g.bar.Describe(what)
	}
}

// Clear takes the bar off the screen, for what is printed there. The next Add or Say shows it again.
func (g *Progress) Clear() {
	if g != nil {
		_ = g.bar.Clear()
	}
}

// To returns a function that reports how many steps are done in all. A lower number than before means that
// the work has started again.
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

// Done removes the bar from the screen. It may be called more than once.
func (g *Progress) Done() {
	if g != nil && !g.bar.IsFinished() {
		_ = g.bar.Finish()
	}
}
