package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
)

// WriterIdle is how long a writer may hold the write lock without a statement. The server ends it after five
// seconds.
const WriterIdle = 2 * time.Second

const (
	writerBusy  = 30 * time.Second // an import may hold the write lock that long
	vacuumDelay = 10 * time.Minute // for which a transaction may keep vacuum from its work
	maxXIDs     = 500_000_000      // not frozen; from 200 million on, vacuum itself freezes
	minSlots    = 10               // free connections
)

// examineServer examines a ledger in PostgreSQL.
func (d *examination) examineServer(ctx context.Context) (err error) {
	if d.Ledger, err = ledger.ServerAddress(d.dsn); err != nil {
		return err
	}
	reached := false
	err = ledger.InspectServer(ctx, d.dsn, func(tx *ledger.Tx, f ledger.ServerFacts) error {
		reached = true
		d.server(f)
		if !failpoint.Shifted() { // leases and delays end by the server's clock
			here := d.Now
			d.Now = func() time.Time { return here().Add(f.ClockSkew) }
			defer func() { d.Now = here }()
		}
		if f.Schema == f.Newest {
			d.tables(ctx, tx)
		}
		return nil
	})
	if err != nil && (!reached || ctx.Err() != nil) {
		return err
	}
	if err != nil {
		d.problem(CodeUnreadable, "'"+d.command("verify")+"' says more", "it cannot be read: %v", err)
	}
	if strings.Contains(d.dsn, "sync=normal") {
		d.advise(CodeSettings, "leave out sync=normal where no command may be lost",
			"--db says sync=normal: a crash of the server may lose the last commands")
	}
	return nil
}

// server checks what the server says of itself.
func (d *examination) server(f ledger.ServerFacts) {
	d.Schema, d.Engine = f.Schema, "PostgreSQL "+f.Version
	d.schema(f.Schema, f.Newest)
	for _, setting := range f.Unsafe {
		d.problem(CodeSettings, "set "+setting+" = on in postgresql.conf, and reload it",
			"the server runs with %s = off: a crash of its machine may destroy the ledger", setting)
	}
	if f.NoAutovacuum {
		d.problem(CodeVacuum, "set autovacuum = on in postgresql.conf, and reload it",
			"the server runs with autovacuum = off: claims become slower with each job that is done")
	}
	if skew := f.ClockSkew.Abs(); skew > clockSlack+f.Tolerance {
		direction := "behind"
		if f.ClockSkew < 0 {
			direction = "ahead of"
		}
		d.advise(CodeClock, "let both follow a time server",
			"this machine's clock is %s %s the server's, by which leases end and jobs become ready: "+
				"times that are given as 15:04 or 10m may not mean what you think",
			words.Duration(skew.Round(100*time.Millisecond)), direction)
	}
	switch {
	case f.Standby:
		d.advise(CodeRights, "give --db the primary server for commands that write",
			"the server is a standby: it may only be read")
	case !f.MayWrite:
		d.advise(CodeRights,
			"GRANT jobledger_worker TO "+quoteIdentifier(f.User)+", after schema/postgres/roles.sql, if it should",
			"%s may only read this ledger", f.User)
	}
	d.writers(f)
	d.vacuum(f)
	if free := f.Most - f.Connections; free < minSlots {
		d.advise(CodeServer, "raise max_connections; a worker process uses 2 while idle, up to 4 while it works",
			"%d of the server's %d connections are taken: the next client may be refused", f.Connections, f.Most)
	}
	if f.MostXIDs > maxXIDs {
		d.problem(CodeServer, "see what keeps vacuum back, and VACUUM (FREEZE) the database",
			"%d million transactions have not been frozen by vacuum; at about 2,000 the server takes no more commands",
			f.MostXIDs/1_000_000)
	}
}

// writers finds sessions that hold the write lock for long.
func (d *examination) writers(f ledger.ServerFacts) {
	waiting := int64(0)
	for _, s := range f.Writers {
		if !s.Holds {
			waiting++
		}
	}
	for _, s := range f.Writers {
		remedy := fmt.Sprintf("SELECT pg_terminate_backend(%d) ends it, and nothing acknowledged is lost", s.PID)
		if s.PID == 0 {
			remedy = "ROLLBACK PREPARED ends it; SELECT * FROM pg_prepared_xacts shows its name"
		}
		seen := fmt.Sprintf("%s has held the write lock for %s, and %s", s, words.Roughly(s.Since),
			words.Count(waiting, "other")+words.Plural(waiting, " waits", " wait"))
		switch {
		case !s.Holds:
		case s.Older:
			d.advise(CodeWriter, remedy, "%s holds the lock of programs older than schema 15, and may not write: "+
				"those wait for it, newer ones do not", s)
		case s.PID == 0:
			d.problem(CodeWriter, remedy, "%s holds the write lock, and %s", s,
				words.Count(waiting, "other")+words.Plural(waiting, " waits", " wait"))
		case strings.HasPrefix(s.State, "idle") && s.Since > WriterIdle:
			d.problem(CodeWriter, remedy, "%s; it is idle", seen)
		case s.State == "" && s.Since > 0:
			d.advise(CodeWriter, "wait, if it is an import or a rebuild; "+remedy+"; GRANT pg_read_all_stats TO "+
				quoteIdentifier(f.User)+" shows more", "%s, or longer: %s may not see what it does", seen, f.User)
		case s.Since > writerBusy:
			d.advise(CodeWriter, "wait, if it is an import or a rebuild; "+remedy, "%s", seen)
		}
	}
}

// vacuum finds what keeps old versions of rows alive. Every claim has to skip these.
func (d *examination) vacuum(f ledger.ServerFacts) {
	for _, s := range f.Holding {
		if s.Since > vacuumDelay {
			d.problem(CodeVacuum, fmt.Sprintf("end it: SELECT pg_terminate_backend(%d)", s.PID),
				"%s is in a transaction since %s (%s): "+
					"vacuum removes nothing that came to be outdated since, and claims become slower",
				s, words.Roughly(s.Since), words.OrNone(s.State))
			break // the oldest comes first, and the others are held up by it too
		}
	}
	for _, slot := range f.Slots {
		d.problem(CodeVacuum, "drop it if it is no longer needed",
			"%s keeps vacuum from removing what is outdated", slot)
	}
}

// quoteIdentifier quotes a name for SQL.
func quoteIdentifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
