package projection

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// PresentEvery is how often a worker process records its presence, whether it has work or not.
const PresentEvery = 15 * time.Second

// PresenceKept is how long the presence of a process is kept that never recorded its end.
const PresenceKept = 30 * 24 * time.Hour

var putPresence = ledger.NewUpsert("presence", "boot", ledger.ColumnTypes{"boot": ledger.TextColumn}, "boot",
	"seen_at")

// Presence is when a worker process was last seen.
type Presence struct {
	event.Worker
	SeenAt time.Time
}

// PutPresence records that the process w was running at now.
func PutPresence(tx *ledger.Tx, w event.Worker, now time.Time) error {
	return tx.Put(putPresence, w.Boot, event.Micros(now))
}

// EndPresence removes the presence of w, and that of processes not seen for PresenceKept.
func EndPresence(tx *ledger.Tx, w event.Worker, now time.Time) error {
	oldest := event.Micros(now.Add(-PresenceKept))
	_, err := tx.Exec(`DELETE FROM presence WHERE boot = ? OR seen_at < ?`, w.Boot, oldest)
	return err
}

// presentOnes finds a process by its boot, and with the largest number, should there be several.
const presentOnes = `SELECT w.worker, w.boot, w.host, w.pid, w.version FROM presence p
JOIN workers w ON w.boot = p.boot WHERE p.boot = ? ORDER BY w.n DESC LIMIT 1`

// Present returns the process with this boot; ok is false if none is there, or none any more.
func Present(ctx context.Context, tx *ledger.Tx, boot string) (w event.Worker, ok bool, err error) {
	rows, err := tx.QueryState(ctx, presentOnes, boot)
	ok, err = table.First(rows, err, &w.Name, &w.Boot, &w.Host, &w.PID, &w.Version)
	return w, ok, err
}
