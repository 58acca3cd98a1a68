package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"jobledger/ledger/internal/engine"
	"jobledger/schema"
)

// Integrity runs PRAGMA integrity_check.
func (f *Engine) Integrity(ctx context.Context, s *engine.Session) (problems []string, err error) {
	rows, err := s.Query(ctx, `PRAGMA integrity_check`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		if line != "ok" {
			problems = append(problems, line)
		}
	}
	return problems, rows.Err()
}

// HighestPos returns what AUTOINCREMENT remembers.
func (f *Engine) HighestPos(ctx context.Context, s *engine.Session) (pos int64, known bool, err error) {
	pos, err = s.Int(ctx, `SELECT seq FROM sqlite_sequence WHERE name = 'events'`)
	return pos, err == nil, err
}

// SchemaDiff compares with a fresh ledger.
func (f *Engine) SchemaDiff(ctx context.Context, s *engine.Session) ([]engine.Object, error) {
	fresh, err := freshSchema()
	if err != nil {
		return nil, err
	}
	return engine.Diff(ctx, s, schemaObjects, fresh)
}

// RepairObject drops the object and creates it again.
func (f *Engine) RepairObject(s *engine.Session, o engine.Object) (err error) {
	if o.Present {
		_, err = s.Exec(fmt.Sprintf(`DROP %s %s`, o.Kind, engine.Quoted(o.Name)))
	}
	if err == nil && o.Want != "" {
		_, err = s.Exec(o.Want)
	}
	return err
}

// HasTable implements engine.Engine.
func (f *Engine) HasTable(ctx context.Context, s *engine.Session, name string) (bool, error) {
	n, err := s.Int(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?`, name)
	return n > 0, err
}

const schemaObjects = `SELECT type, name, sql FROM sqlite_schema
WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'`

// freshSchema returns the objects of an empty ledger by "type name". It makes the ledger once, because that
// costs as much as to verify a small ledger.
var freshSchema = sync.OnceValues(func() (map[string]string, error) {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would be a database of its own
	steps, err := schema.SQLite()
	if err != nil {
		return nil, err
	}
	for _, step := range steps {
		if _, err := db.ExecContext(ctx, step.SQL); err != nil {
			return nil, err
		}
	}
	rows, err := db.QueryContext(ctx, schemaObjects)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	objects := make(map[string]string)
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			return nil, err
		}
		objects[kind+" "+name] = text
	}
	return objects, rows.Err()
})
