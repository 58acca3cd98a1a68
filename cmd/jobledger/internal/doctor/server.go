package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
)

const (
	WriterIdle   = 2 * time.Second  // a writer that says nothing is ended by the server after five
	writerLong   = 30 * time.Second // an import may take that long, while nobody else can write
	vacuumLate   = 10 * time.Minute
	mostXIDs     = 500_000_000 // vacuum begins to hurry at 200 million
	fewFreeSlots = 10          // of connections
)

// examineServer is examine for a ledger in PostgreSQL.
func (d *examination) examineServer(ctx context.Context) (err error) {
	if d.Ledger, err = ledger.ServerAddress(d.dsn); err != nil {
		return err
	}
	looked := false
	err = ledger.InspectServer(ctx, d.dsn, func(tx *ledger.Tx, f ledger.ServerFacts) error {
		looked = true
		d.server(f)
		if !failpoint.Shifted() { // what is overdue is so by the server's clock
			here := d.now
			d.now = func() time.Time { return here().Add(f.ClockSkew) }
			defer func() { d.now = here }()
		}
		if f.Schema == f.Newest {
			d.inside(ctx, tx)
		}
		return nil
	})
	if err != nil && (!looked || ctx.Err() != nil) {
		return err
	}
	if err != nil {
		d.problem(CodeUnreadable, "'"+d.command("verify")+"' says more", "it cannot be read: %v", err)
	}
	if strings.Contains(d.dsn, "sync=normal") {
		d.advise(CodeSettings, "leave out sync=normal where no command may be lost", "--db says sync=normal: a crash of the server may lose the last commands")
	}
	return nil
}

// server judges what the server tells of itself.
func (d *examination) server(f ledger.ServerFacts) {
	d.Schema, d.Engine = f.Schema, "PostgreSQL "+f.Version
	d.older(f.Schema, f.Newest)
	for _, setting := range f.Unsafe {
		d.problem(CodeSettings, "set "+setting+" = on in postgresql.conf, and reload it", "the server runs with %s = off: a crash of its machine may destroy the ledger", setting)
	}
	if f.NoAutovacuum {
		d.problem(CodeVacuum, "set autovacuum = on in postgresql.conf, and reload it", "the server runs with autovacuum = off: claims become slower with each job that is done")
	}
	if off := f.ClockSkew.Abs(); off > clockSlack+f.Tolerance {
		way := "behind"
		if f.ClockSkew < 0 {
			way = "ahead of"
		}
		d.advise(CodeClock, "let both follow a time server", "this machine's clock is %s %s the server's, by which leases end and jobs become ready: times that are given as 15:04 or 10m may not mean what you think",
			render.Duration(off.Round(100*time.Millisecond)), way)
	}
	switch {
	case f.Standby:
		d.advise(CodeRights, "give --db the primary server for commands that write", "the server is a standby: it may only be read")
	case !f.MayWrite:
		d.advise(CodeRights, "GRANT jobledger_worker TO "+quoteName(f.User)+", after schema/postgres/roles.sql, if it should", "%s may only read this ledger", f.User)
	}
	d.writers(f)
	d.vacuum(f)
	if free := f.Most - f.Connections; free < fewFreeSlots {
		d.advise(CodeServer, "raise max_connections, or put a pooler between; a worker process uses up to 7", "%d of the server's %d connections are taken: who comes next may be refused", f.Connections, f.Most)
	}
	if f.MostXIDs > mostXIDs {
		d.problem(CodeServer, "see what keeps vacuum back, and VACUUM (FREEZE) the database", "%d million transactions have not been frozen by vacuum; at about 2,000 the server takes no more commands", f.MostXIDs/1_000_000)
	}
}

// writers looks at who has the write lock for long.
func (d *examination) writers(f ledger.ServerFacts) {
	waiting := 0
	for _, s := range f.Writers {
		if !s.Holds {
			waiting++
		}
	}
	for _, s := range f.Writers {
		remedy := fmt.Sprintf("SELECT pg_terminate_backend(%d) ends it, and nothing acknowledged is lost", s.PID)
		seen := fmt.Sprintf("%s has held the write lock for %s, and %s", s, render.Roughly(s.Since), render.Count(int64(waiting), "other")+render.Plural(int64(waiting), " waits", " wait"))
		switch {
		case !s.Holds:
		case strings.HasPrefix(s.State, "idle") && s.Since > WriterIdle:
			d.problem(CodeWriter, remedy, "%s; it says nothing", seen)
		case s.Since > writerLong:
			d.advise(CodeWriter, "wait, if it is an import or a rebuild; "+remedy, "%s", seen)
		}
	}
}

// vacuum looks at what keeps old versions of rows alive, which every claim then steps over.
func (d *examination) vacuum(f ledger.ServerFacts) {
	for _, s := range f.Holding {
		if s.Since > vacuumLate {
			d.problem(CodeVacuum, fmt.Sprintf("end it: SELECT pg_terminate_backend(%d)", s.PID), "%s is in a transaction since %s (%s): vacuum removes nothing that came to be outdated since, and claims become slower",
				s, render.Roughly(s.Since), render.OrNone(s.State))
			break // it is the oldest, and the others are behind it
		}
	}
	for _, what := range f.Slots {
		d.problem(CodeVacuum, "drop it if nobody needs it any more", "%s keeps vacuum from removing what is outdated", what)
	}
}

// quoteName is a name as SQL has it.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
