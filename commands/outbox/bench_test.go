package outbox_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"jobledger/commands"
	"jobledger/commands/outbox"
	"jobledger/ledger/ledgertest"
)

// shopOf returns the address of an empty database of the program.
func shopOf(b *testing.B, engine string) string {
	b.Helper()
	if engine == "postgres" {
		return ledgertest.Postgres(b)
	}
	return filepath.Join(b.TempDir(), "shop.db")
}

// BenchmarkRelay moves rows that are there, until none is left.
func BenchmarkRelay(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			db := openDB(b, shopOf(b, engine))
			service := &commands.Service{Store: ledgertest.Open(b)}
			payload := make([]byte, 100)
			transact(b, db, func(tx *sql.Tx) bool {
				for range b.N {
					_, err := outbox.Enqueue(context.Background(), tx, commands.Enqueue{Queue: "ship", Payload: payload})
					if err != nil {
						b.Fatal(err)
					}
				}
				return true
			})
			b.ResetTimer()
			moved, err := (&outbox.Relay{Service: service, From: db}).Drain(context.Background())
			if err != nil || moved.Jobs != b.N {
				b.Errorf("moved %+v, %v", moved, err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkRelayLatency measures the time from the commit of a transaction to the handler of its job.
func BenchmarkRelayLatency(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			dsn := shopOf(b, engine)
			db, service := openDB(b, dsn), &commands.Service{Store: ledgertest.Open(b)}
			source, err := outbox.Open(context.Background(), dsn)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = source.Close() })
			runRelay(b, &outbox.Relay{Service: service, From: source})
			b.ResetTimer()
			median := took(b, db, service, b.N)
			b.ReportMetric(median.Seconds()*1000, "ms-p50")
		})
	}
}
