package work

import (
	"errors"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/witness"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
)

// witnessGuard looks at the ledger on behalf of a worker.
func witnessGuard(p *Verbs, store *ledger.Store) *witness.Guard {
	state, err := logs.StateFolder()
	if err != nil {
		state = "" // a warning, if the ledger is sealed
	}
	return &witness.Guard{Witness: witness.In(state), Store: store,
		Warn: func(text string) { p.Message("%s", text) }}
}

// witnessError prints both checkpoints, and adds the exit code and a hint to the alarm of a guard.
func witnessError(p *Verbs, err error) error {
	alarm, ok := errors.AsType[*witness.AlarmError](err)
	if !ok {
		return err
	}
	before, now := alarm.Seen.Before.Checkpoint, alarm.Seen.Now
	p.Message("this host saw %s with %s and the root %s", before.Origin, words.Count(before.Size, "event"),
		before.Root)
	if alarm.Seen.Sealed {
		p.Message("the ledger is %s with %s and the root %s", now.Origin, words.Count(now.Size, "event"), now.Root)
	}
	return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "no more jobs are claimed: %w", alarm),
		"if you know why and it is right, 'jobledger witness --accept --reason …%s'", p.DBFlag())
}
