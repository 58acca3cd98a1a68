package projection

import "testing"

// LimitLoading lets a Loader hold no more than n jobs in memory while the test runs.
func LimitLoading(t testing.TB, n int) {
	before := maxLoading
	maxLoading = n
	t.Cleanup(func() { maxLoading = before })
}
