package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

const (
	sealDelay = time.Hour // after which events should be sealed, and a seal handed out, where sealing is on
	// after which every event should be in a checkpoint that was handed out: a day, and an hour for the one who
	// does it
	handOutDelay = 25 * time.Hour

	maxFiles = 1000 // in the ledger's folder that are looked at
	maxKey   = 4096 // bytes; a larger file is not a key
)

// keys looks for private keys in the ledger's folder: anyone who can write there could sign another history.
func (d *examination) keys() {
	folder := filepath.Dir(d.real)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // which folder reports
	}
	for _, entry := range entries[:min(len(entries), maxFiles)] {
		path := filepath.Join(folder, entry.Name())
		if info, err := entry.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > maxKey {
			continue
		}
		if prove.HoldsKey(path) {
			d.advise(CodeKey, "keep it on another host, or in a folder that the ledger's users may not read",
				"%s is a private key next to the ledger: anyone who can write here could sign another history", path)
		}
	}
}

// evidence checks, where sealing is on, whether the events are sealed and the seals leave this machine.
func (d *examination) evidence(ctx context.Context, tx *ledger.Tx) error {
	sealing, err := projection.SealingOf(ctx, tx)
	if err != nil || !sealing.On {
		return err
	}
	t, err := tree.New(ctx, tx, nil)
	if err != nil {
		return err
	}
	last, _, err := tree.LastSeal(ctx, tx)
	if err != nil {
		return err
	}
	sealed := max(t.Sealed(), min(last.Size, t.Size()))
	old, err := tx.PosAt(ctx, d.Now().Add(-sealDelay))
	if err != nil {
		return err
	}
	if old > sealed {
		d.advise(CodeUnsealed,
			d.command("seal")+"; sweepers add whole blocks of 256 events, the last events are for seal",
			"%s are not sealed, though they are more than an hour old: the first is event %d",
			words.Count(old-sealed, "event"), sealed+1)
	}
	out, ok, err := tree.LastHandedOut(ctx, tx)
	if err != nil {
		return err
	}
	what := "no checkpoint was ever handed out"
	if ok {
		what = fmt.Sprintf("the last checkpoint that was handed out, on %s, is of %s", d.since(out.At),
			words.Count(out.Size, "event"))
	}
	late, err := tx.PosAt(ctx, d.Now().Add(-handOutDelay))
	if err != nil {
		return err
	}
	switch {
	case late > out.Size:
		d.advise(CodeCheckpoint, d.command("checkpoint --exec CMD")+
			", every hour by cron; 'jobledger help security' "+
			"has such commands",
			"%s more than a day old could be rewritten unnoticed: %s", words.Plural(late-out.Size,
				"an event that is", words.Count(late-out.Size, "event")+" that are"), what)
	case last.Size > out.Size && d.Now().Sub(last.At) > sealDelay:
		d.advise(CodeCheckpoint, d.command("checkpoint --to FILE")+" on another host or medium",
			"the seal of %s, from %s, is in the ledger only: %s", words.Count(last.Size, "event"),
			d.since(last.At), what)
	}
	return nil
}
