package postgres

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger/internal/engine"
)

// dialer returns the dialer for connections to a server whose host may leave packets unanswered for timeout
// before the connection counts as lost. A host that died and a firewall that dropped its state close nothing,
// and a writer would wait for a quarter of an hour until its own kernel gives up.
func dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{ // while nothing is sent
			Enable: true, Idle: timeout / 3, Interval: timeout / 6, Count: 4,
		},
		Control: limitUnacknowledged(timeout), // while something is
	}
}

// purpose is what a connection is for.
type purpose int

const (
	forReading purpose = iota
	forWriting
)

// SessionWait is how long a connection waits for its session, which a pooler whose sessions are all taken
// does not give: as long as writers wait for their lock. A variable for the tests.
var SessionWait = 30 * time.Second

// connect opens a connection, whose session is there within the time given. ErrIO where the server cannot be
// reached now.
func (p address) connect(
	ctx context.Context, use purpose, within time.Duration,
) (*engine.Session, error) {
	config := p.config.Copy()
	settings := p.divideSettings(config, use)
	config.StatementCacheCapacity, config.DialFunc = engine.MaxStatements, dialer(p.userTimeout).DialContext
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, explainConnect(err)
	}
	c := &connection{conn: conn, writes: use == forWriting}
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := c.apply(limited, settings); err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if limited.Err() != nil {
			return nil, fmt.Errorf("%w within %s: the connection was taken, and no statement is executed",
				engine.ErrNoSession, within)
		}
		return nil, explainConnect(err)
	}
	return &engine.Session{Connection: c, Pipelined: true, RoundTrip: time.Since(start)}, nil
}
