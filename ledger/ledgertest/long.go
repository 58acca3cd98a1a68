package ledgertest

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
)

// long is defined here because every package with tests imports this one: each must accept "go test ./...
// -long", as it does -engine and -soak. A test requires that import.
var long = flag.Bool("long", false, "the long tier: all rounds of every harness")

// Size returns the amount of work of a harness in this run: short with -short, long with -long, otherwise
// standard. It must be called after the flags are parsed.
func Size[T any](short, standard, long T) T {
	switch {
	case Long():
		return long
	case testing.Short():
		return short
	}
	return standard
}

// Long reports whether this run is the long tier. A test that starts its own binary passes the flag on.
func Long() bool { return *long }

// All reports whether this run takes what is too slow for each "go test ./...": it is the long tier, or on
// PostgreSQL, or with the race detector, or -run asks for some tests by name.
func All() bool {
	named := flag.Lookup("test.run")
	return Long() || raced || *engine == "postgres" || named != nil && named.Value.String() != ""
}

// Slow skips a test that is too slow for each "go test ./...": where a quicker test is about the same thing,
// or where it is about an edge of the system, such as a full disk, that few changes touch. All says when it
// runs.
func Slow(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("slow: it runs with -long, -race, -engine postgres, and where -run asks for it")
	}
}

// Sample returns every n-th element of all; in the long tier, all of them.
func Sample[T any](all []T, n int) (some []T) {
	if Long() {
		n = 1
	}
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// Tests mostly wait for a lease, a disk or a server: more of them run in parallel than there are processors.
// The flag -parallel overrides it. Their heaps are small, of which the collector would take a tenth of the
// processor time: it waits until they are five times as large, unless GOGC says otherwise.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	testing.Init()
	if err := flag.Set("test.parallel", strconv.Itoa(max(8, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
}

// Preset sets a flag for the duration of a test, unless it was given.
func Preset(t testing.TB, name, value string) {
	t.Helper()
	f := flag.Lookup(name)
	before := f.Value.String()
	if before != f.DefValue {
		return
	}
	set := func(value string) {
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	set(value)
	t.Cleanup(func() { set(before) })
}
