package many

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// Halt says when to run no more of many commands.
type Halt struct {
	Now  bool   // end those that run, too
	what string // what is counted: fail, success or done; "": never
	n    int
}

// ParseHalt reads "soon,fail=1", "now,success=2" and the like.
func ParseHalt(text string) (h Halt, err error) {
	if text == "" || text == "never" {
		return h, nil
	}
	when, rest, _ := strings.Cut(text, ",")
	what, count, _ := strings.Cut(rest, "=")
	n, err := strconv.Atoi(count)
	switch {
	case when != "soon" && when != "now", what != "fail" && what != "success" && what != "done",
		err != nil, n < 1:
		return h, fmt.Errorf("%q is not WHEN,WHAT=N, such as soon,fail=1: WHEN is soon or now, WHAT is fail, "+
			"success or done, and N a number from 1 on", text)
	}
	return Halt{Now: when == "now", what: what, n: n}, nil
}

// Reached reports whether so many ends are enough.
func (h Halt) Reached(succeeded, failed int) bool {
	switch h.what {
	case "fail":
		return failed >= h.n
	case "success":
		return succeeded >= h.n
	case "done":
		return succeeded+failed >= h.n
	}
	return false
}

// maxSlots is how many commands may run at once.
const maxSlots = 1000

// ParseSlots reads how many commands run at once: N, N% of the processors, +N more than there are processors;
// "" is one for each.
func ParseSlots(text string) (n int, err error) {
	cores := runtime.NumCPU()
	if text == "" {
		return cores, nil
	}
	percent, share := strings.CutSuffix(text, "%")
	added, more := strings.CutPrefix(percent, "+")
	n64, err := strconv.ParseUint(added, 10, 16)
	n = int(n64) // #nosec G115 -- of 16 bits
	switch {
	case err != nil, share && more, added != "" && added[0] == '+':
		return 0, fmt.Errorf("%q is not N, N%% or +N", text)
	case share:
		n = max(1, cores*n/100)
	case more:
		n += cores
	}
	if n < 1 || n > maxSlots {
		return 0, fmt.Errorf("%q: allowed: from 1 to %d at once", text, maxSlots)
	}
	return n, nil
}
