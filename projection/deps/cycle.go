package deps

import (
	"context"

	"jobledger/ledger"
)

// WaitsFor reports whether one of jobs is parent, or waits for it, by way of others too. It looks at up to
// most edges; known is false if there are more, and then waits is false too.
func WaitsFor(ctx context.Context, tx *ledger.Tx, jobs []int64, parent int64, most int) (waits, known bool,
	err error) {
	seen := make(map[int64]bool)
	for left := most; len(jobs) > 0; {
		j := jobs[0]
		jobs = jobs[1:]
		if j == parent {
			return true, true, nil
		}
		if j == 0 || seen[j] {
			continue
		}
		seen[j] = true
		edges, err := Of(ctx, tx, j, left+1)
		if err != nil {
			return false, false, err
		}
		if left -= len(edges); left < 0 {
			return false, false, nil
		}
		for _, e := range edges {
			jobs = append(jobs, e.Parent)
		}
	}
	return false, true, nil
}
