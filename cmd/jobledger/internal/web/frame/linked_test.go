package frame

import (
	"slices"
	"testing"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// TestLinked: the jobs and the worker of a cell lead to their pages, at the moment of the page; other cells,
// and what only looks like a job, stay as they are.
func TestLinked(t *testing.T) {
	const a, b = "01KKQGAZ43CWGCX9CD0BRFPDB6", "01KKQDH80S3X4FMEXS75VJXM6W"
	for _, x := range []struct {
		title, cell, at string
		want            []Link
	}{
		{"JOB", a, "", []Link{{"", ""}, {a, "/jobs/" + a}, {"", ""}}},
		{"JOB", "-", "pos:7", []Link{{"-", ""}}},
		{"JOB", "X" + a, "", []Link{{"X" + a, ""}}},
		{"HELD THEN", a + ", " + b + " and 3 more", "pos:7", []Link{{"", ""}, {a, "/jobs/" + a + "?at=pos%3A7"},
			{", ", ""}, {b, "/jobs/" + b + "?at=pos%3A7"}, {" and 3 more", ""}}},
		{"WORKER", "a/b", "-2h", []Link{{"a/b", "/workers/a%2Fb?at=-2h"}}},
		{"WORKER", "-", "", []Link{{"-", ""}}},
		{"WORKER", "", "", []Link{{"", ""}}},
		{"QUEUE", a, "", []Link{{a, ""}}},
	} {
		if got := linked(x.title, x.cell, x.at); !slices.Equal(got, x.want) {
			t.Errorf("%s %q at %q: got %q, want %q", x.title, x.cell, x.at, got, x.want)
		}
	}
}
