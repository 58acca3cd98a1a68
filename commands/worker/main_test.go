//go:build unix

package worker

import (
	"os"
	"testing"

	"jobledger/ledger/ledgertest"
)

// TestMain lets this program be the worker process that BenchmarkWake and BenchmarkIdle start.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "listener" {
		listener(os.Args[2])
	}
	ledgertest.DefaultSignals()
	os.Exit(m.Run())
}

// self is the path of this program.
func self() string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return exe
}
