package work

import (
	"math"
	"strings"
	"testing"

	_ "jobledger/ledger/ledgertest" // its flags
)

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
