package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// wantUsageError ends the test unless err reports wrong input of the user.
func wantUsageError(t *testing.T, typed string, err error) {
	t.Helper()
	if code, why, _ := cli.Explain(err); code != cli.ExitUsage || why == "" {
		t.Fatalf("%q: exit code %d, %q", typed, code, why)
	}
}

// The value of --tag is unchanged: nothing is lost, cut or joined.
func FuzzTags(f *testing.F) {
	for _, seed := range []string{"a=1", "a=1\nb=2=3", "c=", "=1", "", "a", "a=1\na=2", " d = x ", "a=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pairs := strings.Split(text, "\n")
		tags, err := readTags(pairs)
		if err != nil {
			wantUsageError(t, text, err)
			return
		}
		var again []string
		for name, value := range tags {
			again = append(again, name+"="+value)
		}
		slices.Sort(again)
		if !slices.Equal(again, slices.Sorted(slices.Values(pairs))) {
			t.Fatalf("%q is read as %v", pairs, tags)
		}
	})
}

// Progress is a number from 0 to 1 that JSON can represent, written with only digits, a point, an exponent
// and %.
func FuzzProgress(f *testing.F) {
	for _, seed := range []string{"0", "1", "0.5", "40%", "100%", "101%", "-0", "5e-05", "1e999", "1e-999",
		"NaN", "Inf", "0x1p-1", "1_0%", "%", "", ".", "+.5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := readProgress(text)
		if !ok {
			return
		}
		if !(n >= 0 && n <= 1) || math.Signbit(n) || strings.ContainsAny(text, "_xXpPnN") {
			t.Fatalf("%q is read as %v", text, n)
		}
	})
}
