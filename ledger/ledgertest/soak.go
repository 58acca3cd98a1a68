package ledgertest

import (
	"flag"
	"testing"
	"time"
)

// soak is defined here because every package with tests imports this one: each must accept "go test ./...
// -run Soak -soak 10m".
var soak = flag.Duration("soak", 0,
	"how long the soak puts the program under load; default: a few seconds, less with -short")

// SoakFor returns how long a soak puts the program under load: the value of -soak, otherwise byDefault, or
// short with -short. What follows the load takes up to reserve. If go test's -timeout leaves less, the
// duration is shortened by up to a fifth; if that is not enough, the test fails.
func SoakFor(t testing.TB, byDefault, short, reserve time.Duration) time.Duration {
	t.Helper()
	d := *soak
	switch {
	case d < 0:
		t.Fatalf("-soak %v: give a duration above 0", d)
	case d == 0 && testing.Short():
		d = short
	case d == 0:
		d = byDefault
	}
	test, ok := t.(*testing.T)
	if !ok {
		return d
	}
	deadline, ok := test.Deadline()
	if !ok {
		return d
	}
	switch room := time.Until(deadline) - reserve; {
	case room >= d:
		return d
	case room < d*4/5:
		t.Fatalf("-soak %v does not fit into -timeout, which leaves %v; give -timeout 0", d,
			max(0, room.Round(time.Second)))
		return 0
	default:
		t.Logf("-timeout leaves %v instead of %v", room.Round(time.Second), d)
		return room
	}
}
