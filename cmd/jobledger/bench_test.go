package main

import "testing"

func TestBenchTellsOfJobsThatRanTwiceOrWereLeft(t *testing.T) {
	for name, test := range map[string]struct {
		counts benchCounts
		left   int64
		code   int
	}{
		"each once":      {benchCounts{Runs: []int32{1, 1, 1}}, 0, exitOK},
		"twice":          {benchCounts{Runs: []int32{1, 2, 1}}, 0, exitDiscrepancy},
		"twice, missing": {benchCounts{Runs: []int32{1, 2, 0}}, 0, exitDiscrepancy},
		"left":           {benchCounts{Runs: []int32{1, 1, 1}}, 1, exitDiscrepancy},
		"never enqueued": {benchCounts{Runs: []int32{1, 1, 0}, Stray: 1}, 0, exitDiscrepancy},
	} {
		t.Run(name, func(t *testing.T) {
			r := benchResult{Jobs: 3}
			if code, message, _ := explain(r.count(test.counts, benchLook{left: test.left})); code != test.code {
				t.Errorf("got exit code %d (%s), want %d", code, message, test.code)
			}
		})
	}
}
