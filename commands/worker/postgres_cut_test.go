package worker

import (
	"testing"
	"time"

	"jobledger/commands/commandstest"
	"jobledger/ledger/ledgertest"
)

// Connections break at every eighth COMMIT of workers, before it or after it, most of them in bursts. Each
// job runs once, and succeeds.
func TestPostgresWorkersWhoseCommitsAreCut(t *testing.T) {
	t.Parallel()
	c, through := commandstest.NewCutter(t, ledgertest.Postgres(t))
	l := startLoad(t, through, ledgertest.Size(200, 400, 5000))
	c.Every.Store(8)
	<-l.all
	c.Every.Store(0)
	t.Logf("%d of %d commits were cut", c.Cuts.Load(), c.Seen())
	if c.Cuts.Load() == 0 {
		t.Error("no commit was cut")
	}
	l.wantEachOnce()
}

// A connection breaks at the COMMIT of a claim, and the server commits later: after the worker has asked
// whether it did. The worker asks again under the lock, and so no claim is left to wait for the end of its
// lease.
func TestPostgresWorkersWhoseCommitsAreLate(t *testing.T) {
	t.Parallel()
	c, through := commandstest.NewCutter(t, ledgertest.Postgres(t))
	l := startLoad(t, through, ledgertest.Size(200, 400, 1500))
	<-l.half
	for cut := int32(1); cut <= 4; cut++ {
		c.Once(commandstest.CommittedLate)
		for c.Cuts.Load() < cut {
			time.Sleep(time.Millisecond) // pause of a poll
		}
	}
	<-l.all
	l.wantEachOnce()
}
