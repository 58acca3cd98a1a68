package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"jobledger/ledger/internal/engine"
	"jobledger/schema"
)

// HighestPos returns what AUTOINCREMENT remembers.
func (f *Engine) HighestPos(ctx context.Context, s *engine.Session) (pos int64, known bool, err error) {
	pos, err = s.Int(ctx, `SELECT seq FROM sqlite_sequence WHERE name = 'events'`)
	return pos, err == nil, err
}

// SchemaDiff compares with a fresh ledger.
func (f *Engine) SchemaDiff(ctx context.Context, s *engine.Session) ([]engine.Object, error) {
	steps, err := schema.SQLite()
	if err != nil {
		return nil, err
	}
	return schemaDiff(ctx, s, len(steps))
}

// schemaDiff compares with what the migrations up to version make.
func schemaDiff(ctx context.Context, s *engine.Session, version int) ([]engine.Object, error) {
	known, err := isSchemaOf(ctx, s, version)
	if err != nil || known {
		return nil, err
	}
	fresh, err := freshSchema(version)
	if err != nil {
		return nil, err
	}
	return engine.Diff(ctx, s, schema.SelectSQLiteObjects, fresh, isForeign)
}

// isSchemaOf reports whether the objects are exactly those of version: no more and no fewer. It costs a tenth
// of a millisecond.
func isSchemaOf(ctx context.Context, s *engine.Session, version int) (bool, error) {
	rows, err := s.Query(ctx, schema.SelectSQLiteObjects)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var digest schema.ObjectsDigest
	for rows.Next() {
		var kind, name, definition string
		if err := rows.Scan(&kind, &name, &definition); err != nil {
			return false, err
		}
		digest.Add(kind, name, definition)
	}
	return digest.String() == schema.SQLiteDigest(version), rows.Err()
}

var (
	plainIndex = sync.OnceValue(func() *regexp.Regexp { // it is seldom needed, and compiled at no start
		return regexp.MustCompile(`^CREATE INDEX (?:"[^"]+"|\w+) ON "?\w+"? ?\([\w\s,"]+\)$`)
	})
	indexOf = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\bON\s+["'` + "`" + `\[]?(\w+)`)
	})
	ourTables = []string{"blocks", "bodies", "events", "group_heads", "group_rates", "jobs", "keyframes",
		"kinds", "limits",
		"names", "presence", "queues", "seals", "states", "timetable", "workers"}
)

// isForeign reports whether an object that the schema does not have could run, or could refuse something,
// when the ledger is written: a trigger, or an index of one of our tables that is unique, partial or over
// expressions. Further tables and views do no harm.
func isForeign(kind, definition string) bool {
	switch kind {
	case "trigger":
		return true
	case "index":
		on := indexOf().FindStringSubmatch(definition)
		ours := on == nil || slices.Contains(ourTables, strings.ToLower(on[1]))
		return ours && !plainIndex().MatchString(definition)
	}
	return false
}

// RepairObject drops the object and creates it again.
func (f *Engine) RepairObject(s *engine.Session, o engine.Object) (err error) {
	if o.Present {
		err = dropObject(s, o)
	}
	if err == nil && o.Want != "" {
		_, err = s.Exec(o.Want)
	}
	return err
}

// dropObject drops what SQLite takes the object for, which a forged definition may hide. It drops an object
// as a table only if its definition says that it is a table.
func dropObject(s *engine.Session, o engine.Object) error {
	rows, err := s.Query(context.Background(), `SELECT type FROM sqlite_schema WHERE name = ?`, o.Name)
	if err != nil {
		return err
	}
	kind := ""
	for err == nil && rows.Next() {
		err = rows.Scan(&kind)
	}
	if err = cmp.Or(err, rows.Err(), rows.Close()); err != nil {
		return err
	}
	forged := kind != "trigger" && kind != "index" && kind != o.Kind
	if forged || strings.HasPrefix(o.Name, "sqlite_") {
		return fmt.Errorf("%w: the definition of the %s %s was forged, and cannot be repaired", engine.ErrAltered,
			kind, o.Name)
	}
	_, err = s.Exec(fmt.Sprintf(`DROP %s %s`, kind, engine.Quoted(o.Name)))
	return err
}

// DropGuards drops the triggers.
func (f *Engine) DropGuards(ctx context.Context, s *engine.Session) error {
	var names []string
	err := each(ctx, s, func(row []driver.Value) { names = append(names, fmt.Sprint(row[0])) },
		`SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
	for _, name := range names {
		if err == nil {
			_, err = s.Exec(`DROP TRIGGER ` + engine.Quoted(name))
		}
	}
	return err
}

// HasTable implements engine.Engine.
func (f *Engine) HasTable(ctx context.Context, s *engine.Session, name string) (bool, error) {
	n, err := s.Int(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?`, name)
	return n > 0, err
}

// freshSchema returns the objects by "kind name" that the migrations up to version make. It makes such a
// ledger once, because that costs as much as to verify a small ledger.
func freshSchema(version int) (map[string]string, error) {
	freshMu.Lock()
	defer freshMu.Unlock()
	if objects, ok := fresh[version]; ok {
		return objects, nil
	}
	objects, err := makeSchema(context.Background(), version)
	if err == nil {
		fresh[version] = objects
	}
	return objects, err
}

var (
	freshMu sync.Mutex
	fresh   = make(map[int]map[string]string)
)

func makeSchema(ctx context.Context, version int) (map[string]string, error) {
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
	for _, step := range steps[:version] {
		if _, err := db.ExecContext(ctx, step.SQL); err != nil {
			return nil, err
		}
	}
	rows, err := db.QueryContext(ctx, schema.SelectSQLiteObjects)
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
}
