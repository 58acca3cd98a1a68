package doctor

import (
	"context"

	"jobledger/commands/archive"
	"jobledger/ledger"
)

// archiveFiles checks that the files of archived events are where they should be. It does not read them.
func (d *examination) archiveFiles(ctx context.Context, tx *ledger.Tx) error {
	dir := d.archive
	if dir == "" && d.real != "" {
		dir = d.Ledger + archive.Suffix
	}
	if dir == "" {
		return nil // a ledger on a server, whose archive was not named
	}
	files, err := archive.ListIn(ctx, tx, dir)
	if err != nil {
		return err
	}
	remedy := "look for it in a backup; '" + d.command("archive check") + "' reads all of them"
	for _, f := range files {
		switch {
		case f.State == archive.Missing:
			d.advise(CodeArchive, remedy, "the events %d to %d were archived in %s, which is not there", f.Lo+1, f.Hi,
				f.Path)
		case f.State == archive.Damaged:
			d.problem(CodeArchive, remedy, "%s is not what was archived: %s", f.Path, f.Detail)
		}
	}
	return nil
}
