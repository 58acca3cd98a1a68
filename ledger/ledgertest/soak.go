package ledgertest

import (
	"flag"
	"testing"
	"time"
)

// soak stands here, and every package with tests imports this one, so that "go test ./... -run Soak -soak
// 10m" is understood by all of them.
var soak = flag.Duration("soak", 0,
	"how long the soak puts the program under load; default: a few seconds, less with -short")

// SoakFor is how long a soak puts the program under load: what -soak says, otherwise byDefault, otherwise
// short with -short. What a soak does after that takes up to reserve. Where go test's -timeout leaves less,
// it is shortened by up to a fifth, and the test fails where that is not enough.
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
