package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger/internal/engine"
)

// A pooler may stand between this program and the server. A pooler refuses most settings at the start of a
// connection, so these are set afterwards. And it may give each transaction another session, with the
// settings of another client: another search_path is another ledger. So each connection puts a mark of its
// own into its session, and each transaction looks for it.

// startupSettings are the settings that are sent as the connection starts: poolers know them.
var startupSettings = []string{"application_name", "client_encoding", "datestyle", "options",
	"standard_conforming_strings", "timezone"}

// markSetting is the setting that holds a connection's mark.
const markSetting = "jobledger.connection"

// settings returns the settings of a connection apart from those that the address gives.
func (p address) settings(use purpose) map[string]string {
	settings := map[string]string{
		"search_path":                   p.schema,
		"default_transaction_isolation": "read committed",
		"jit":                           "off", // plans are small
	}
	if use == forWriting {
		settings[frozenWriter] = frozenWriterDefault
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
	return settings
}

// divideSettings leaves in config the settings that are sent as the connection starts, and returns the
// others: those of the address, and of this program.
func (p address) divideSettings(config *pgx.ConnConfig, use purpose) map[string]string {
	later := p.settings(use)
	for name, value := range config.RuntimeParams {
		if slices.Contains(startupSettings, strings.ToLower(name)) {
			continue
		}
		if _, ours := later[name]; !ours || name == frozenWriter {
			later[name] = value
		}
		delete(config.RuntimeParams, name)
	}
	config.RuntimeParams["application_name"] = "jobledger"
	config.RuntimeParams["timezone"] = "UTC"
	return later
}

// apply makes the settings in the session, with a new mark.
func (c *connection) apply(ctx context.Context, settings map[string]string) error {
	c.mark = rand.Text()
	settings[markSetting] = c.mark
	var calls []string
	var args []any
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, name, settings[name])
		calls = append(calls, fmt.Sprintf("set_config($%d, $%d, false)", len(args)-1, len(args)))
	}
	args = slices.Insert(args, 0, any(pgx.QueryExecModeExec))
	rows, err := c.conn.Query(ctx, `SELECT pg_backend_pid()::text, `+strings.Join(calls, ", "), args...)
	if err != nil {
		return err
	}
	var pid uint64
	for rows.Next() {
		pid, err = strconv.ParseUint(string(rows.RawValues()[0]), 10, 32)
	}
	c.pid = uint32(pid) // #nosec G115 -- it has 32 bits
	return cmp.Or(rows.Err(), err)
}

// errPooled reports that this connection was given another session than the one that it has set up.
var errPooled = fmt.Errorf("%w: a pooler between this program and the server gives each transaction another "+
	"session (transaction pooling), which may be one of another ledger", engine.ErrPooled)

// isPooled reports whether a pooler is between: it does not give its clients the numbers of the sessions.
func (c *connection) isPooled() bool { return c.pid != c.conn.PgConn().PID() }

// probeTimeout is how long a pooler may take to answer whether it changes sessions. Without an answer, the
// transactions find out.
const probeTimeout = 500 * time.Millisecond

// checkPooler returns errPooled if there is a pooler that changes sessions. It costs nothing without one.
func (p *Engine) checkPooler(ctx context.Context, c *connection) error {
	if p.pooled = c.isPooled(); !p.pooled {
		return nil
	}
	// This connection is between two transactions. If another one can have its session now, or it gets another
	// itself, the pooler takes it away after each transaction.
	s, err := p.connectSpare(ctx, probeTimeout)
	if err != nil {
		return nil
	}
	defer s.Close()
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var now uint32
	err = c.conn.QueryRow(limited, `SELECT pg_backend_pid()::bigint`, pgx.QueryExecModeExec).Scan(&now)
	if connOf(s).pid == c.pid || err == nil && now != c.pid {
		return errPooled
	}
	return explain(err)
}
