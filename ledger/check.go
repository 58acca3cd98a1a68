package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"jobledger/schema"
)

// StoredBody is a row of the table bodies, for verification.
type StoredBody struct {
	Pos        int64
	Salt, Body []byte
}

// Bodies yields every stored body in the order of pos.
func (tx *Tx) Bodies(ctx context.Context) iter.Seq2[StoredBody, error] { return tx.BodiesAfter(ctx, 0) }

// BodiesAfter is Bodies from behind pos.
func (tx *Tx) BodiesAfter(ctx context.Context, pos int64) iter.Seq2[StoredBody, error] {
	return func(yield func(StoredBody, error) bool) {
		b := bodyPages{tx: tx, after: pos}
		for {
			page, err := b.next(ctx)
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if err != nil {
				yield(StoredBody{}, err)
			}
			if err != nil || len(page) == 0 {
				return
			}
		}
	}
}

const (
	pageOfBodies  = `SELECT pos, salt, body FROM bodies WHERE pos > ? ORDER BY pos LIMIT 256`
	bodyPageBytes = 4 << 20 // a page ends where it has so many
)

// bodyPages reads bodies a page at a time.
type bodyPages struct {
	tx    *Tx
	after int64
	page  []StoredBody
}

// next returns the next bodies; none at the end. The slice is good until the call after.
func (b *bodyPages) next(ctx context.Context) ([]StoredBody, error) {
	clear(b.page)
	b.page = b.page[:0]
	size, wrong := 0, error(nil)
	err := b.tx.Each(ctx, func(row []driver.Value) bool {
		pos, isPos := row[0].(int64)
		salt, isSalt := row[1].([]byte)
		body, isBody := row[2].([]byte)
		if !isPos || !isSalt && row[1] != nil || !isBody {
			wrong = fmt.Errorf("%w: body %v is not bytes", ErrDamaged, row[0])
			return false
		}
		b.after = pos
		b.page = append(b.page, StoredBody{pos, salt, body})
		size += len(body)
		return size < bodyPageBytes
	}, pageOfBodies, b.after)
	if err == nil {
		err = wrong
	}
	return b.page, err
}

// Integrity runs the database's own check, where it has one, and returns what it found wrong.
func (tx *Tx) Integrity(ctx context.Context) (problems []string, err error) {
	return tx.store.engine.integrity(ctx, tx)
}

func (f *file) integrity(ctx context.Context, tx *Tx) (problems []string, err error) {
	rows, err := tx.Query(ctx, `PRAGMA integrity_check`)
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

// Highest returns the highest pos that there ever was, if the database remembers that.
func (tx *Tx) Highest(ctx context.Context) (pos int64, known bool, err error) {
	return tx.store.engine.highest(ctx, tx)
}

func (f *file) highest(ctx context.Context, tx *Tx) (pos int64, known bool, err error) {
	pos, err = tx.number(ctx, `SELECT seq FROM sqlite_sequence WHERE name = 'events'`)
	return pos, err == nil, err
}

// Guards compares the tables, indexes, triggers and views of the ledger with those that the schema creates, and
// returns what is missing, altered, or a trigger too many; so also with the words for kinds and states.
func (tx *Tx) Guards(ctx context.Context) (problems []string, err error) {
	differing, err := tx.store.engine.differing(ctx, tx)
	for _, o := range differing {
		switch {
		case !o.present:
			problems = append(problems, fmt.Sprintf("%s %s is missing", o.kind, o.name))
		case o.want == "":
			problems = append(problems, fmt.Sprintf("%s %s is not part of the schema", o.kind, o.name))
		default:
			problems = append(problems, fmt.Sprintf("%s %s was altered", o.kind, o.name))
		}
	}
	for _, w := range wordTables() {
		if err != nil {
			break
		}
		var wrong []string
		wrong, err = w.differing(ctx, tx)
		problems = append(problems, wrong...)
	}
	return problems, err
}

// MendSchema puts indexes, triggers and views back that are missing or altered, and drops triggers that are not part
// of the schema. Of the tables it makes those named anew, empty: they must be such that can be derived from others. It
// puts the words for kinds and states right, and returns what it mended.
func (tx *Tx) MendSchema(ctx context.Context, tables ...string) (mended []string, err error) {
	for _, ofTables := range []bool{true, false} { // a table takes its indexes along
		differing, err := tx.store.engine.differing(ctx, tx)
		if err != nil {
			return nil, err
		}
		for _, o := range differing {
			if (o.kind == "table") != ofTables || ofTables && !slices.Contains(tables, o.name) {
				continue
			}
			if err := tx.store.engine.mend(tx, o); err != nil {
				return nil, fmt.Errorf("%s %s: %w", o.kind, o.name, err)
			}
			mended = append(mended, o.kind+" "+o.name)
		}
	}
	for _, w := range wordTables() {
		switch changed, err := w.mend(ctx, tx); {
		case err != nil:
			return nil, err
		case changed && !slices.Contains(mended, "table "+w.name): // made just now
			mended = append(mended, "table "+w.name)
		}
	}
	return mended, nil
}

// object is a table, index, trigger or view that is not as the schema has it.
type object struct {
	kind, name string
	present    bool
	is, want   string // its definition; "" for one that is missing, or that should not be
}

// differing compares with a fresh ledger.
func (f *file) differing(ctx context.Context, tx *Tx) ([]object, error) {
	fresh, err := freshSchema()
	if err != nil {
		return nil, err
	}
	return tx.differing(ctx, schemaObjects, fresh)
}

func (f *file) mend(tx *Tx, o object) (err error) {
	if o.present {
		_, err = tx.Exec(fmt.Sprintf(`DROP %s %s`, o.kind, quoted(o.name)))
	}
	if err == nil && o.want != "" {
		_, err = tx.Exec(o.want)
	}
	return err
}

// quoted is a name as SQL has it.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// differing compares the objects that query lists (kind, name and definition) with those that there should be, by
// "kind name".
func (tx *Tx) differing(ctx context.Context, query string, want map[string]string) (differing []object, err error) {
	want = maps.Clone(want)
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, name, definition string
		if err := rows.Scan(&kind, &name, &definition); err != nil {
			return nil, err
		}
		original, ok := want[kind+" "+name]
		if ok && original != definition || !ok && kind == "trigger" {
			differing = append(differing, object{kind: kind, name: name, present: true, is: definition, want: original})
		}
		delete(want, kind+" "+name)
	}
	for key, definition := range want {
		kind, name, _ := strings.Cut(key, " ")
		differing = append(differing, object{kind: kind, name: name, want: definition})
	}
	slices.SortFunc(differing, func(a, b object) int { return strings.Compare(a.kind+a.name, b.kind+b.name) })
	return differing, rows.Err()
}

const schemaObjects = `SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'`

// freshSchema returns the objects of an empty ledger by "type name". To make one costs as much as to verify a small
// ledger, so it is made once.
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

func (f *file) hasTable(ctx context.Context, tx *Tx, name string) (bool, error) {
	n, err := tx.number(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?`, name)
	return n > 0, err
}
