package ledgertest

import (
	"os"
	"os/signal"
	"syscall"
)

// DefaultSignals gives the children of this process the signals HUP and INT as a terminal would. Children
// inherit ignored signals, and a test run ignores HUP under nohup, and INT in the background of a script; a
// signal that is caught is reset to its default in a child. Tests that send signals call it in TestMain.
func DefaultSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
