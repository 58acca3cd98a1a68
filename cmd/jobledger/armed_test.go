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

// built is the folder of the programs that several tests have in common; it is removed after all of them.
var built string

// armed builds the program with failpoints, once, and returns its path.
var armed = sync.OnceValues(func() (program string, err error) {
	program = filepath.Join(built, "armed")
	out, err := exec.Command("go", "build", "-tags", "failpoint", "-ldflags", "-s -w", "-o", program,
		".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, err
})

// programEnv names the program that programOf has built, for the tests that start this test's binary again.
const programEnv = "JOBLEDGER_TEST_PROGRAM"

// programOf puts the program itself where testscript has put this test's binary under its name. A process of
// it begins in half the time, since nothing that only tests need is in it.
func programOf(path string) error {
	if err := os.Remove(path); err != nil { // it may be a link to this test's binary
		return err
	}
	if text, err := os.ReadFile(os.Getenv(programEnv)); err == nil {
		return os.WriteFile(path, text, 0o755)
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", path)
	if underRace {
		build.Args = append(build.Args, "-race")
	} else { // as it is released: a library of C would be loaded at each start
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return os.Setenv(programEnv, path)
}

// tidied runs the tests of this package, with everything they need, and cleans up afterwards.
type tidied struct{ *testing.M }

func (m tidied) Run() int {
	var err error
	if built, err = os.MkdirTemp("", "jobledger-tests-"); err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(built) }()
	os.Setenv(cli.ArchiveCacheEnv, filepath.Join(built, "caches")) // not that of the user who runs the tests
	if program, err := exec.LookPath("jobledger"); err != nil {
		panic(err)
	} else if testing.CoverMode() == "" { // testscript adds up what this test's binary covers
		if err := programOf(program); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	ledgertest.DefaultSignals()
	return m.M.Run()
}
