package query_test

import (
	"testing"

	"jobledger/projection/query"
)

// A percentile is one of the values: of two the median is the smaller one, and of a hundred only the last
// exceeds the 99th.
func TestPercentile(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	for _, tt := range []struct {
		sorted        []int
		percent, want int
	}{
		{nil, 50, 0}, {[]int{7}, 1, 7}, {[]int{7}, 50, 7}, {[]int{7}, 100, 7}, {[]int{1, 9}, 50, 1},
		{[]int{1, 9}, 51, 9}, {[]int{1, 9}, 0, 1}, {[]int{1, 5, 9}, 50, 5},
		{hundred, 50, 50}, {hundred, 90, 90}, {hundred, 99, 99},
		{hundred, 100, 100}, {hundred[:99], 99, 99}, {hundred[:10], 99, 10},
	} {
		if got := query.Percentile(tt.sorted, tt.percent); got != tt.want {
			t.Errorf("%d%% of %d values: %d, want %d", tt.percent, len(tt.sorted), got, tt.want)
		}
	}
}
