package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"jobledger/ledger/internal/engine"
	"jobledger/schema"
)

// Integrity returns nothing: checksums and amcheck are for the server's administrator.
func (p *Engine) Integrity(context.Context, *engine.Session) ([]string, error) { return nil, nil }

// IntegrityInSteps returns nothing, like Integrity.
func (p *Engine) IntegrityInSteps(context.Context, int64, func(func(*engine.Session) error) error) ([]string,
	error) {
	return nil, nil
}

// HighestPos is not known: the server does not remember a pos that is gone.
func (p *Engine) HighestPos(context.Context, *engine.Session) (int64, bool, error) {
	return 0, false, nil
}

// DropGuards does nothing: other sessions would see it.
func (p *Engine) DropGuards(context.Context, *engine.Session) error { return nil }

// HasTable implements engine.Engine.
func (p *Engine) HasTable(ctx context.Context, s *engine.Session, name string) (bool, error) {
	n, err := s.Int(ctx, `SELECT count(*) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname = ?`, name)
	return n > 0, err
}

// SchemaDiff compares the objects with those that the migrations make. It does not know those of a newer
// schema.
func (p *Engine) SchemaDiff(ctx context.Context, s *engine.Session) ([]engine.Object, error) {
	if p.info.SchemaVersion > p.newest {
		return nil, nil
	}
	return engine.Diff(ctx, s, schema.SelectPostgresObjects, schema.PostgresObjects(), isForeign)
}

// guards are the triggers of the schema, as selectGuards shows them.
var guards = sync.OnceValue(func() string {
	var lines []string
	for object, definition := range schema.PostgresObjects() {
		if name, is := strings.CutPrefix(object, "trigger "); is {
			words := strings.Fields(definition) // the table, then when it fires
			lines = append(lines, words[0]+" "+name+" "+words[1])
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ",")
})

const selectGuards = `SELECT coalesce(string_agg(t.line, ',' ORDER BY t.line), '') FROM (
    SELECT (c.relname || ' ' || g.tgname || ' ' || g.tgenabled::text) COLLATE "C" AS line
    FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND NOT g.tgisinternal
    UNION ALL SELECT 'a rule' COLLATE "C" FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND c.relhasrules) t`

// guarded reports whether the guards are there and fire always, and there is no other trigger, nor a rule.
func (p *Engine) guarded(ctx context.Context) (bool, error) {
	found := ""
	_, err := p.writer.First(ctx, []any{&found}, selectGuards)
	return found == guards(), err
}

// isForeign reports whether an object that the schema does not have would run when the ledger is written.
func isForeign(kind, _ string) bool { return kind == "trigger" || kind == "rule" }

// RepairObject needs the owner of the schema. A table or a view that is created again loses its grants.
func (p *Engine) RepairObject(s *engine.Session, o engine.Object) error {
	creations, err := schema.PostgresCreations()
	if err != nil {
		return err
	}
	create := creations[o.Kind+" "+o.Name]
	if o.Want != "" && create == "" {
		return fmt.Errorf("%w: it is a constraint of its table; "+
			"put it back as schema/postgres of this program has it", engine.ErrDamaged)
	}
	replace := strings.Replace(create, "CREATE", "CREATE OR REPLACE", 1)
	statements := []string{schema.PostgresPath}
	switch o.Kind {
	case "trigger": // its definition begins with the name of its table
		is, want := firstWord(o.Is), firstWord(o.Want)
		constraint := strings.HasPrefix(create, "CREATE CONSTRAINT") // which cannot be replaced
		if constraint {
			replace = create
		}
		if o.Present && (is != want || constraint) { // which waits for readers, as a replacement does not
			statements = append(statements, `DROP TRIGGER `+engine.Quoted(o.Name)+` ON `+engine.Quoted(is))
		}
		if o.Want != "" {
			statements = append(statements, replace,
				`ALTER TABLE `+engine.Quoted(want)+` ENABLE ALWAYS TRIGGER `+engine.Quoted(o.Name))
		}
	case "rule": // its name is table.rule
		on, name, _ := strings.Cut(o.Name, ".")
		statements = append(statements, `DROP RULE `+engine.Quoted(name)+` ON `+engine.Quoted(on))
	case "function": // triggers and views may depend on it
		statements = append(statements, replace)
	default:
		if o.Present && o.Kind == "table" { // the views that read it; they are created again next
			statements = append(statements, `DROP VIEW IF EXISTS history, attempts, current`)
		}
		if o.Present {
			statements = append(statements, `DROP `+o.Kind+` `+engine.Quoted(o.Name))
		}
		statements = append(statements, create)
	}
	for _, statement := range statements {
		if _, err := s.Exec(statement); err != nil {
			return err
		}
	}
	return nil
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// Vacuum returns ErrEngine.
func (p *Engine) Vacuum(context.Context, string) (int64, error) {
	return 0, fmt.Errorf("%w: pg_dump or pg_basebackup copies a ledger in PostgreSQL while others write",
		engine.ErrEngine)
}

// MoveWAL does nothing: the server's checkpointer does it.
func (p *Engine) MoveWAL(context.Context) error { return nil }

// FreePages does nothing: the server's autovacuum gives free space to new rows.
func (p *Engine) FreePages(context.Context, *engine.Session, int) (int64, error) { return 0, nil }

// TrimWAL does nothing: the server keeps its own log.
func (p *Engine) TrimWAL(context.Context) (bool, error) { return false, nil }

// Checkpoint vacuums the table of bodies. That needs its owner, and a session; otherwise the server does it
// some time later.
func (p *Engine) Checkpoint(ctx context.Context) (whole bool, err error) {
	s, err := p.OpenReader(ctx)
	if errors.Is(err, engine.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.Close()
	conn := connOf(s).conn
	var may bool // any other user gets a warning, and no vacuum
	const owned = `SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'bodies'::regclass`
	if err := conn.QueryRow(ctx, owned).Scan(&may); err != nil || !may {
		return false, explain(err)
	}
	_, err = conn.Exec(ctx, `VACUUM bodies`)
	return err == nil, explain(err)
}
