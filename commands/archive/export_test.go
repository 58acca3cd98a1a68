package archive

import "testing"

// ReadAtOnce sets how many events of a Reader one transaction adds, until t ends.
func ReadAtOnce(t testing.TB, events int64) {
	before := readAtOnce
	readAtOnce = events
	t.Cleanup(func() { readAtOnce = before })
}
