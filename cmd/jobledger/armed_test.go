package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

var failpoints = flag.Bool("failpoints", false,
	"run the tests that build the program with failpoints, as -long does")

// built is the folder of the program with failpoints; empty until a test needs it.
var built string

// armed builds the program with failpoints, once, and returns its path.
var armed = sync.OnceValues(func() (program string, err error) {
	if built, err = os.MkdirTemp("", "jobledger-failpoint"); err != nil {
		return "", err
	}
	program = filepath.Join(built, "jobledger")
	out, err := exec.Command("go", "build", "-tags", "failpoint", "-ldflags", "-s -w", "-o", program,
		".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, err
})

// tidied runs the tests of this package, with everything they need, and cleans up afterwards.
type tidied struct{ *testing.M }

func (m tidied) Run() int {
	caches, err := os.MkdirTemp("", "jobledger-caches-")
	if err != nil {
		panic(err)
	}
	os.Setenv(cli.ArchiveCacheEnv, caches) // not that of the user who runs the tests
	defer func() {
		_ = os.RemoveAll(caches)
		if built != "" {
			_ = os.RemoveAll(built)
		}
	}()
	ledgertest.DefaultSignals()
	return m.M.Run()
}
