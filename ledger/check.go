package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"iter"

	"jobledger/schema"
)

// Body rows as a sequence, for verification.
type StoredBody struct {
	Pos        int64
	Salt, Body []byte
}

// Bodies yields every stored body in the order of pos.
func (tx *Tx) Bodies(ctx context.Context) iter.Seq2[StoredBody, error] {
	return func(yield func(StoredBody, error) bool) {
		rows, err := tx.Query(ctx, `SELECT pos, salt, body FROM bodies ORDER BY pos`)
		if err != nil {
			yield(StoredBody{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var b StoredBody
			err := rows.Scan(&b.Pos, &b.Salt, &b.Body)
			if !yield(b, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(StoredBody{}, err)
		}
	}
}

// Integrity runs SQLite's own integrity_check and returns what it found wrong.
func (tx *Tx) Integrity(ctx context.Context) (problems []string, err error) {
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

// Guards compares the tables, indexes, triggers and views of the file with those that the schema creates, and
// returns what is missing, altered, or a trigger too many.
func (tx *Tx) Guards(ctx context.Context) (problems []string, err error) {
	want, err := freshSchema(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, schemaObjects)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name, kind, text string
		if err := rows.Scan(&name, &kind, &text); err != nil {
			return nil, err
		}
		switch original, ok := want[kind+" "+name]; {
		case ok && original != text:
			problems = append(problems, fmt.Sprintf("%s %s was altered", kind, name))
		case !ok && kind == "trigger":
			problems = append(problems, fmt.Sprintf("trigger %s is not part of the schema", name))
		}
		delete(want, kind+" "+name)
	}
	for object := range want {
		problems = append(problems, object+" is missing")
	}
	return problems, rows.Err()
}

const schemaObjects = `SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'`

// freshSchema returns the objects of an empty ledger by "type name".
func freshSchema(ctx context.Context) (map[string]string, error) {
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
		var name, kind, text string
		if err := rows.Scan(&name, &kind, &text); err != nil {
			return nil, err
		}
		objects[kind+" "+name] = text
	}
	return objects, rows.Err()
}
