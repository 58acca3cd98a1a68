package query

import (
	"slices"
	"time"
)

// Percentile returns the smallest of sorted values that at least so many percent of them do not exceed, the
// nearest rank: of two values the median is the smaller one, and of a hundred the 99th percentile the second
// largest. It returns the zero value if there are none.
func Percentile[T any](sorted []T, percent int) (value T) {
	if len(sorted) == 0 {
		return value
	}
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}

// Wait is how long the claimed jobs of a queue had been ready.
type Wait struct {
	Queue              string
	Claims             int64
	P50, P90, P99, Max time.Duration // see [Percentile]
}

// waitOf is the wait of claims in microseconds, which it sorts.
func waitOf(queue string, micros []int64) Wait {
	slices.Sort(micros)
	at := func(percent int) time.Duration {
		return time.Duration(Percentile(micros, percent)) * time.Microsecond
	}
	return Wait{queue, int64(len(micros)), at(50), at(90), at(99), at(100)}
}
