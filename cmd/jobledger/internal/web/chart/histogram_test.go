package chart_test

import (
	"testing"

	"jobledger/cmd/jobledger/internal/web/chart"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// TestHistogram: bars are as high as their counts say, stay within the picture, and a large one leaves out
// the buckets far from those that have a count.
func TestHistogram(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	counts := []int64{0, 0, 0, 4, 1000, 0, 2000, 0, 0}
	for _, small := range []bool{false, true} {
		h := chart.NewHistogram("Gaps", "words", names, counts, small)
		if want := map[bool]int{false: 6, true: 9}[small]; len(h.Bars) != want {
			t.Fatalf("small %v: %d bars, want %d", small, len(h.Bars), want)
		}
		end := 0.0
		for i, b := range h.Bars {
			n := counts[i]
			if !small {
				if n = counts[i+2]; b.Name != names[i+2] {
					t.Errorf("bar %d is called %q, want %q", i, b.Name, names[i+2])
				}
			}
			if b.X < end || b.X+b.Width > h.Width || b.Y < 0 || b.Y+b.Height > h.Height+.01 {
				t.Errorf("small %v: the bar %+v is outside of the picture, or in another one", small, b)
			}
			end = b.X + b.Width
			if (b.Height > 0) != (n > 0) {
				t.Errorf("small %v: %d is %g high", small, n, b.Height)
			}
		}
		at := func(i int) chart.Bar {
			if !small {
				i -= 2
			}
			return h.Bars[i]
		}
		if got := at(6).Height / at(4).Height; got < 1.99 || got > 2.01 {
			t.Errorf("small %v: the bar of 2000 is %g times as high as that of 1000", small, got)
		}
		if small && (h.Bars[3].Name != "" || h.Foot() != h.Height) {
			t.Errorf("the small one has texts: %+v", h.Bars[3])
		}
	}
	if h := chart.NewHistogram("Gaps", "", names, make([]int64, 9), false); len(h.Bars) != 0 {
		t.Errorf("nothing has %d bars", len(h.Bars))
	}
	if h := chart.NewHistogram("Gaps", "", names, []int64{0, 0, 0, 0, 0, 0, 0, 0, 1}, true); !h.Bars[8].Many {
		t.Error("the last bucket is not marked")
	}
	if got := chart.Words(names, counts); got != "4 d, 1000 e, 2000 g" {
		t.Errorf("got %q", got)
	}
}
