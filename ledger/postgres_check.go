package ledger

import (
	"context"
	"fmt"
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
func (p *postgres) differing(ctx context.Context, tx *Tx) ([]object, error) {
	return tx.differing(ctx, schema.SelectPostgresObjects, schema.PostgresObjects())
}

// mend takes the schema's owner. Of a table or a view that is made anew, what was granted is lost.
func (p *postgres) mend(tx *Tx, o object) error {
	creations, err := schema.PostgresCreations()
	if err != nil {
		return err
	}
	create := creations[o.kind+" "+o.name]
	if o.want != "" && create == "" {
		return fmt.Errorf("%w: it is a constraint of its table; put it back as schema/postgres of this program has it", ErrDamaged)
	}
	replace := strings.Replace(create, "CREATE", "CREATE OR REPLACE", 1)
	statements := []string{schema.PostgresPath}
	switch o.kind {
	case "trigger": // its definition begins with the name of its table
		is, want := firstWord(o.is), firstWord(o.want)
		if o.present && is != want { // which waits for those who read, as a replacement does not
			statements = append(statements, `DROP TRIGGER `+quoted(o.name)+` ON `+quoted(is))
		}
		if o.want != "" {
			statements = append(statements, replace, `ALTER TABLE `+quoted(want)+` ENABLE ALWAYS TRIGGER `+quoted(o.name))
		}
	case "function": // triggers and views may depend on it
		statements = append(statements, replace)
	default:
		if o.present && o.kind == "table" { // which they read; they are made again next
			statements = append(statements, `DROP VIEW IF EXISTS history, attempts, current`)
		}
		if o.present {
			statements = append(statements, `DROP `+o.kind+` `+quoted(o.name))
		}
		statements = append(statements, create)
	}
	for _, statement := range statements {
		if _, err := tx.Exec(statement); err != nil {
			return err
		}
	}
	return nil
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
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
	conn := s.server().conn
	var may bool // to anybody else the server gives a warning, and does nothing
	const owned = `SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'bodies'::regclass`
	if err := conn.QueryRow(ctx, owned).Scan(&may); err != nil || !may {
		return false, explainPostgres(err)
	}
	_, err = conn.Exec(ctx, `VACUUM bodies`)
	return err == nil, explainPostgres(err)
}
