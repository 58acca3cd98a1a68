package doctor

import (
	"context"
	"time"

	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/proof"
	"jobledger/projection"
)

// archiveFiles checks that the files of archived events are where they should be. It does not read them.
func (d *examination) archiveFiles(ctx context.Context, tx *ledger.Tx) error {
	dir := d.archive
	if dir == "" && d.real != "" {
		dir = d.Ledger + archive.Suffix
	}
	if err := d.removal(ctx, tx); err != nil {
		return err
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

// removalDelay is for how long a removal may pause, and how late a policy may be, before that is worth a word.
const (
	removalDelay = time.Hour
	policyDelay  = 3 * 24 * time.Hour
)

// removal looks at a removal that did not end, and at a policy that is not carried out.
func (d *examination) removal(ctx context.Context, tx *ledger.Tx) error {
	r, err := projection.Removed(ctx, tx)
	if err != nil {
		return err
	}
	if r.More && d.now().Sub(r.At) > removalDelay {
		d.advise(CodeRemoval, "the same 'jobledger archive' goes on with it",
			"the removal of archived jobs stopped %s, and more were to leave", d.since(r.At))
	}
	policy, err := projection.ArchivePolicy(ctx, tx)
	if err != nil || policy.OlderThan == 0 {
		return err
	}
	late, err := tx.PosAt(ctx, d.now().Add(-policy.OlderThan-policyDelay))
	if err != nil {
		return err
	}
	last, err := projection.LastSegment(ctx, tx)
	if err == nil && late >= last.Hi+proof.BlockSize {
		d.advise(CodeRemoval, "run 'jobledger work' or 'jobledger sweep' where the archive is: JOBLEDGER_ARCHIVE",
			"the archive policy is days late: no process carries it out")
	}
	return err
}
