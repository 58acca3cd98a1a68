package ledgertest

import (
	"flag"
	"runtime"
	"strconv"
	"testing"
)

// long is registered here because every package with tests imports this one: "go test ./... -long" must be
// understood by all of them, as -engine and -soak are. A test requires that import.
var long = flag.Bool("long", false, "the long tier: all rounds of every harness")

// Size returns how much a harness does in this run: short with -short, long with -long, otherwise standard.
// Tests call it, when flags are parsed.
func Size[T any](short, standard, long T) T {
	switch {
	case Long():
		return long
	case testing.Short():
		return short
	}
	return standard
}

// Long reports whether this run is the long tier. A test that starts its own program again passes it on.
func Long() bool { return *long }

// Waiting lets more tests run at once than there are processors, in a package whose tests mostly wait for a
// lease, a disk or a server. The flag -parallel overrides it. TestMain calls it before flags are parsed.
func Waiting() {
	testing.Init()
	if flag.Parsed() {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
}
