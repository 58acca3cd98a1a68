package jobfilter

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/ledger"
)

// Window reads --from and --to. Without them it is the whole ledger as it is now.
func Window(p *cli.Program, c *cli.Context, tx *ledger.Tx) (export.Window, error) {
	from, to, err := p.FromTo(c)
	if err != nil {
		return export.Window{}, err
	}
	return export.Between(c.Context, tx, from, to)
}
