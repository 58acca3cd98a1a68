package produce

import (
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/files/joblines"
	_ "jobledger/ledger/ledgertest" // its flags
)

// The value of --tag is unchanged: nothing is lost, cut or joined.
func FuzzTags(f *testing.F) {
	for _, seed := range []string{"a=1", "a=1\nb=2=3", "c=", "=1", "", "a", "a=1\na=2", " d = x ", "a=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pairs := strings.Split(text, "\n")
		tags, err := joblines.Tags("--tag", pairs)
		if err != nil {
			if code, why, _ := fault.Explain(err); code != cli.ExitUsage || why == "" {
				t.Fatalf("%q: exit code %d, %q", text, code, why)
			}
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
