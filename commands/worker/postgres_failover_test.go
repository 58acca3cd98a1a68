package worker

import (
	"testing"

	"jobledger/commands/commandstest"
	"jobledger/ledger/ledgertest"
)

// The server crashes while workers are busy, and a standby that has all of it takes over. What was
// acknowledged is there, each job runs once, and the workers go on.
func TestPostgresFailover(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	server := ledgertest.PostgresServer(t)
	standby := server.Standby()
	c, through := commandstest.NewCutter(t, server.URL())
	l := startLoad(t, through, ledgertest.Size(400, 1000, 2000))
	<-l.half
	server.Kill()
	standby.Promote()
	c.Redirect(t, standby.URL())
	<-l.all
	l.wantEachOnce()
}
