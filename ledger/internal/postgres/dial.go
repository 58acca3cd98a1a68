package postgres

import (
	"context"
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

// connect opens a connection. ErrIO where the server cannot be reached now.
func (p address) connect(ctx context.Context, use purpose) (*engine.Session, error) {
	config := p.config.Copy()
	settings := map[string]string{
		"search_path":                   p.schema,
		"application_name":              "jobledger",
		"timezone":                      "UTC",
		"default_transaction_isolation": "read committed",
		"jit":                           "off", // plans are small
	}
	if use == forWriting {
		if _, given := config.RuntimeParams[frozenWriter]; !given {
			settings[frozenWriter] = frozenWriterDefault
		}
		// Each statement of a writer has one good plan, along an index in its order, whatever the statistics say
		// about a table that was empty a minute ago. A hash of all jobs or a sort of a lane costs a hundred times
		// as much, and to start processes for a parallel scan takes longer than to claim a thousand jobs.
		settings["plan_cache_mode"] = "force_generic_plan"
		settings["max_parallel_workers_per_gather"] = "0"
		for _, plan := range []string{"seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort"} {
			settings["enable_"+plan] = "off"
		}
		if settings["synchronous_commit"] = "on"; p.sync == "normal" {
			settings["synchronous_commit"] = "off"
		}
	}
	for name, value := range settings {
		config.RuntimeParams[name] = value
	}
	config.StatementCacheCapacity, config.DialFunc = engine.MaxStatements, dialer(p.userTimeout).DialContext
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, explainConnect(err)
	}
	return &engine.Session{Connection: &connection{conn: conn, writes: use == forWriting}, Pipelined: true}, nil
}
