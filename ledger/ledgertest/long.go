package ledgertest

import (
	"flag"
	"runtime"
	"strconv"
	"testing"
)

// long is registered here, and every package with tests imports this one, so that "go test ./... -long" is
// understood by all of them. It is a flag and not a variable of the environment because -engine and -soak
// are: one test requires the import of every package with tests.
var long = flag.Bool("long", false, "run the long tier: all rounds of every harness, and the tests that take 20 seconds")

// Long reports whether this run is the long tier.
func Long() bool { return *long }

// Size returns how much a harness does in this run: short with -short, long with -long, otherwise usual. It
// is called by tests, after flags are parsed.
func Size[T any](short, usual, long T) T {
	switch {
	case Long():
		return long
	case testing.Short():
		return short
	}
	return usual
}

// OnlyLong skips a test that has only one size, which is too much for every day. why says what takes the
// time.
func OnlyLong(t testing.TB, why string) {
	t.Helper()
	if !Long() {
		t.Skip("only with -long: " + why)
	}
}

// Waiting has more tests run at once than there are processors: those of a package that mostly wait for a
// lease, for a disk or for a server. -parallel says it otherwise. TestMain calls it before flags are
// parsed.
func Waiting() {
	testing.Init()
	if flag.Parsed() {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
}
