package doctor

import (
	"context"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/proof"
	"jobledger/projection"
)

// archiveFiles checks that the files of archived events are where they should be. It does not read them.
func (d *examination) archiveFiles(ctx context.Context, tx *ledger.Tx) error {
	dir := d.Archive
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
	old := 0
	for _, f := range files {
		switch {
		case f.State == archive.Missing:
			d.problem(CodeArchive, remedy, "the events %d to %d were archived in %s, which is not there", f.Lo+1, f.Hi,
				f.Path)
		case f.State == archive.Damaged:
			d.problem(CodeArchive, remedy, "%s is not what was archived: %s", f.Path, f.Detail)
		case len(f.Parts) == 0:
			old++
		}
	}
	if old > 0 {
		d.advise(CodeArchive, d.command("archive describe"), "%s of the archive %s written by an older program: "+
			"each question about a job in %s reads all of it", words.Count(int64(old), "file"),
			words.Plural(int64(old), "was", "were"), words.Plural(int64(old), "it", "them"))
	}
	return nil
}

// removalDelay is for how long a removal may pause, and policyDelay how late a policy may be carried out.
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
	if r.More && d.Now().Sub(r.At) > removalDelay {
		d.advise(CodeRemoval, "the same 'jobledger archive' goes on with it",
			"the removal of archived jobs stopped %s, and more were to leave", d.since(r.At))
	}
	policy, err := projection.ArchivePolicy(ctx, tx)
	if err != nil || policy.OlderThan == 0 {
		return err
	}
	if err := d.openForLong(ctx, tx, policy.OlderThan); err != nil {
		return err
	}
	late, err := tx.PosAt(ctx, d.Now().Add(-policy.OlderThan-policyDelay))
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

// openPeriods is after how many periods of the policy a job that has not ended is worth a look: it stays in
// the ledger, and each file of the archive with events of it carries its earlier ones.
const openPeriods = 2

const openSince = `SELECT count(*), coalesce(min(n), 0) FROM jobs WHERE n <= ? AND finished_at IS NULL`

// openForLong finds jobs that have not ended for so long that the policy could have removed them twice.
func (d *examination) openForLong(ctx context.Context, tx *ledger.Tx, period time.Duration) error {
	upTo, err := tx.PosAt(ctx, d.Now().Add(-openPeriods*period))
	if err != nil || upTo == 0 {
		return err
	}
	rows, err := tx.Query(ctx, openSince, upTo)
	if err != nil {
		return err
	}
	defer rows.Close()
	var n, first int64
	for rows.Next() {
		if err := rows.Scan(&n, &first); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil || n == 0 {
		return err
	}
	jobs, err := projection.GetMany(ctx, tx, []int64{first})
	if err == nil {
		d.advise(CodeOpen, "'"+d.command("why "+string(jobs[first].ID))+"' says what it waits for; cancel what "+
			"is not wanted any more", "%s %s not ended, and %s enqueued more than two periods of the archive "+
			"policy ago; the oldest: %s in %s", words.Count(n, "job"), words.Plural(n, "has", "have"),
			words.Plural(n, "was", "were"), jobs[first].ID, jobs[first].Queue)
	}
	return err
}
