package ledger_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// BenchmarkAppend writes one event per Write: one caller shows the latency, many callers show what group
// commit gains.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := ledgertest.Open(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						err := s.Write(b.Context(), func(tx *ledger.Tx) error { return note(b.Context(), tx, "cli:bench") })
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func BenchmarkEvents(b *testing.B) {
	s := ledgertest.Open(b)
	write(b, s, func(tx *ledger.Tx) error {
		for range 10_000 {
			if err := note(b.Context(), tx, "cli:bench"); err != nil {
				return err
			}
		}
		return nil
	})
	b.ResetTimer()
	for b.Loop() {
		events(b, s, ledger.Filter{})
	}
	b.ReportMetric(float64(b.N)*10_000/b.Elapsed().Seconds(), "events/s")
}
