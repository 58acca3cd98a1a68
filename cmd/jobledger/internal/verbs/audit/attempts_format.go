package audit

import (
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// attemptTable is a table of claims with the columns that a person has chosen.
type attemptTable struct {
	print.Report
	rows [][]any
	what bool // one of the columns says what a job is
}

// attemptFormat reads --format and --csv; nil: neither is given, or the columns were listed.
func (p *Verbs) attemptFormat(c *cli.Context) (*attemptTable, error) {
	t := &attemptTable{}
	var err error
	switch names := c.String("format"); {
	case c.Bool("csv") && p.JSON:
		return nil, cli.Usagef("--csv and --json cannot be combined")
	case names == "help":
		list := &cli.Table{Columns: []cli.Column{{Title: "COLUMN"}, {Title: "SAYS"}}}
		for _, column := range print.AttemptColumns {
			list.Add(column[0], column[1])
		}
		return nil, p.PrintTable(list)
	case c.IsSet("format"):
		t.Columns, err = print.ParseAttemptColumns(names)
	case c.Bool("csv"):
		for _, column := range print.AttemptColumns {
			if column[0] != "what" { // it would read each payload
				t.Columns = append(t.Columns, column[0])
			}
		}
	default:
		return nil, nil
	}
	if err != nil {
		return nil, cli.WithHint(cli.Usagef("--format: %w", err), "'jobledger attempts --format help' lists them")
	}
	for _, name := range t.Columns {
		t.what = t.what || name == "what"
	}
	return t, nil
}

// add adds a claim, which may be open at now.
func (t *attemptTable) add(c *cli.Context, store *ledger.Store, a query.Attempt, now time.Time) error {
	what := ""
	if t.what {
		err := store.Read(c.Context, func(tx *ledger.Tx) error {
			jobs, err := projection.GetMany(c.Context, tx, []int64{a.N})
			if err == nil {
				what, err = state.What(c.Context, tx, jobs[a.N])
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	t.rows = append(t.rows, print.AttemptRow(a, t.Columns, what, now))
	return nil
}

// printFormat prints t, which has rows.
func (p *Verbs) printFormat(c *cli.Context, t *attemptTable, now time.Time) error {
	switch {
	case p.JSON:
		return cli.PrintJSONOf(p.Program, t.rows, t.RowJSON)
	case c.Bool("csv"):
		return t.WriteCSV(p.Stdout, t.rows)
	}
	return p.PrintTable(t.Table(t.rows, now.Location()).Widened(c.Bool("wide")))
}
