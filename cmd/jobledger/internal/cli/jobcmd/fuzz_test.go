package jobcmd

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/commands/worker"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// What is read as an exit map has each code once, from 0 to 255, with an outcome that there is.
func FuzzExitMap(f *testing.F) {
	for _, seed := range []string{"3=fail", "0=fail-no-retry\n75=succeed", "256=fail", "-1=fail", "+3=fail",
		"03=fail\n3=release", "=", "3", "3=fail=x", "٣=fail", "3= fail"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pairs := strings.Split(text, "\n")
		exits, err := exitMap(pairs)
		if err != nil {
			if code, why, _ := fault.Explain(err); code != cli.ExitUsage || why == "" {
				t.Fatalf("%q: exit code %d, %q", text, code, why)
			}
			return
		}
		if len(exits) != len(pairs) {
			t.Fatalf("%q: %d pairs are read as %v", text, len(pairs), exits)
		}
		for code, outcome := range exits {
			written := func(pair string) bool {
				digits, is := strings.CutSuffix(pair, "="+string(outcome))
				return is && strings.TrimLeft(digits, "0") == strings.TrimLeft(strconv.Itoa(code), "0") && digits != ""
			}
			if code < 0 || code > 255 || !slices.Contains(worker.Outcomes(), outcome) ||
				!slices.ContainsFunc(pairs, written) {
				t.Fatalf("%q is read as %v", text, exits)
			}
		}
	})
}
