package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jobledger/schema"
)

// integrity is left to the server: its checksums and amcheck are an administrator's.
func (p *postgres) integrity(context.Context, *Tx) ([]string, error) { return nil, nil }

// highest is not known: nothing remembers a pos that is gone.
func (p *postgres) highest(context.Context, *Tx) (int64, bool, error) { return 0, false, nil }

func (p *postgres) hasTable(ctx context.Context, tx *Tx, name string) (bool, error) {
	n, err := tx.number(ctx, `SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname = ?`, name)
	return n > 0, err
}

// differing compares the objects with those that the migrations make.
func (p *postgres) differing(ctx context.Context, tx *Tx) (differing []object, err error) {
	want := maps.Clone(schema.PostgresObjects())
	rows, err := tx.Query(ctx, schema.SelectPostgresObjects)
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
			differing = append(differing, object{kind: kind, name: name, sql: original, present: true, fixed: true})
		}
		delete(want, kind+" "+name)
	}
	for key, definition := range want {
		kind, name, _ := strings.Cut(key, " ")
		differing = append(differing, object{kind: kind, name: name, sql: definition, fixed: true})
	}
	slices.SortFunc(differing, func(a, b object) int { return strings.Compare(a.kind+a.name, b.kind+b.name) })
	return differing, rows.Err()
}

func (p *postgres) vacuum(context.Context, string) (int64, error) {
	return 0, fmt.Errorf("%w: pg_dump or pg_basebackup copies a ledger in PostgreSQL while others write", ErrEngine)
}

// checkpoint vacuums the table of bodies. That takes its owner; otherwise the server does it some time later.
func (p *postgres) checkpoint(ctx context.Context) (whole bool, err error) {
	s, err := p.place.connect(ctx, forReading)
	if err != nil {
		return false, err
	}
	defer s.close()
	conn := s.connection.(*server).conn
	var may bool // to anybody else the server gives a warning, and does nothing
	const owned = `SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'bodies'::regclass`
	if err := conn.QueryRow(ctx, owned).Scan(&may); err != nil || !may {
		return false, explainPostgres(err)
	}
	_, err = conn.Exec(ctx, `VACUUM bodies`)
	return err == nil, explainPostgres(err)
}
