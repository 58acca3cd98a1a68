package prove

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/tree"
)

// Prove makes a proof that a stranger can check.
func (p *Verbs) Prove() cli.Verb {
	verb := jobverb.ByName(cli.Verb{
		Name: "prove", Group: cli.GroupLedger, Usage: "prove to others what happened to a job",
		About: "The proof is text: the job's events, for each the hashes that lead from it to the root of the " +
			"ledger's hash tree, and a checkpoint. It is the last checkpoint that was handed out, or where an event " +
			"came later, one of the ledger as it is now, which is not signed. 'jobledger verify --proof FILE' " +
			"checks it without the ledger, and so does a script of 45 lines ('jobledger help security').\n" +
			"With --against the checkpoint is one of those in a file that the reader of the proof kept: the " +
			"smallest that covers the events. Where none covers them all, the proof has the events up to the " +
			"largest, and a message says how many are left out.\n" +
			"In place of a job, pos:N proves one event. A proof has no payloads and results, only their digests, " +
			"and stays right when they are erased. It does show keys, tags, error details and names.\n" +
			"--consistency OLD proves that the ledger only went on since the last checkpoint in OLD: the first " +
			"events of that in --to, or of the last one that was handed out, are all those of OLD. So what two " +
			"places keep can be compared without the ledger.",
		Args: "JOB", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write it to a new `FILE`"},
			cli.ListFlag("against", "prove it by a checkpoint in `FILE`, - for standard input; may be repeated"),
			&cli.BoolFlag{Name: "strict", Usage: "with --against: 3 if an event is not covered"},
			&cli.StringFlag{Name: "consistency",
				Usage: "in place of JOB: prove that the ledger went on from the last checkpoint in the file `OLD`"},
			&cli.StringFlag{Name: "to", Usage: "with --consistency: up to the last checkpoint in the file `NEW`"},
		},
		Examples: []cli.Example{
			{"jobledger prove 01KDY9FY88 -o job.proof", "all events of a job"},
			{"jobledger prove --key invoice-17 -q mail >invoice.proof", "JOB is named as everywhere"},
			{"jobledger prove pos:4711", "a single event, such as that of a pause"},
			{"jobledger prove 01KDY9FY88 --against auditor.checkpoints", "for one who kept these"},
			{"jobledger prove --consistency a.checkpoints --to b.checkpoints", "that two places saw one history"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict, cli.ExitNoJob, cli.ExitDiscrepancy},
		Run:   p.prove,
	})
	verb.InPlace = append(verb.InPlace, "consistency")
	return verb
}

func (p *Verbs) prove(c *cli.Context) error {
	ref, named, err := jobverb.RefOf(c)
	consistency := c.IsSet("consistency")
	switch {
	case err != nil:
		return err
	case c.IsSet("output") && c.String("output") == "":
		return cli.Usagef("--output is empty")
	case consistency && (named || c.IsSet("against")):
		return cli.Usagef("--consistency cannot be combined with a job or --against")
	case c.IsSet("to") && !consistency:
		return cli.Usagef("--to needs --consistency")
	case c.Bool("strict") && !c.IsSet("against"):
		return cli.Usagef("--strict needs --against")
	}
	var proved prove.Proved
	if consistency {
		proved, err = p.proveConsistency(c)
	} else {
		proved, err = p.proveEvents(c, ref)
	}
	switch {
	case errors.Is(err, tree.ErrBeyond):
		return cli.Exitf(cli.ExitNothing, "%s is beyond the end of the ledger", c.Args().First())
	case errors.Is(err, prove.ErrNotCovered):
		return cli.Exitf(cli.ExitNothing, "%w", err)
	case errors.Is(err, prove.ErrNotLarger):
		return cli.Usagef("--consistency: %w", err)
	case errors.Is(err, prove.ErrForked):
		return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "%w", err),
			"nothing was proven; 'jobledger verify --against FILE' says more")
	case err != nil:
		return err
	}
	if n := int64(proved.Later); n > 0 {
		later := words.Plural(n, "a later event is", words.Count(n, "later event")+" are")
		if c.Bool("strict") {
			return cli.Exitf(cli.ExitNothing, "%s not proven by what was kept; the newest that holds is of %d", later,
				proved.Size)
		}
		p.Message("%s not proven by what was kept", later)
	}
	if !proved.HandedOut {
		p.Message(
			"no checkpoint was handed out since, so the proof has one of its own, which is not signed; after " +
				"'jobledger checkpoint --exec …' prove it again")
	}
	what := fmt.Sprintf("%s at %s, in a ledger of %d", words.Count(int64(len(proved.Positions)), "event"),
		joinNumbers(proved.Positions), proved.Size)
	if consistency {
		what = fmt.Sprintf("consistency up to %s", words.Count(proved.Size, "event"))
	}
	if file := c.String("output"); file != "" {
		if err := writeNew(file, proved.Text); err != nil {
			return err
		}
		p.Message("%s holds the proof of %s", file, what)
		if !p.JSON {
			return nil
		}
	}
	if !p.JSON {
		_, err := p.Stdout.Write(proved.Text)
		return err
	}
	return p.PrintJSON(struct {
		Positions []int64 `json:"positions"`
		Origin    string  `json:"origin"`
		Size      int64   `json:"size"`
		Root      string  `json:"root"`
		HandedOut bool    `json:"handed_out"`
		Proof     string  `json:"proof"`
		Later     int     `json:"later"`
	}{append([]int64{}, proved.Positions...), proved.Origin, proved.Size, proved.Root.String(), proved.HandedOut,
		string(proved.Text), proved.Later})
}

// proveEvents proves the events that ref names.
func (p *Verbs) proveEvents(c *cli.Context, ref find.Ref) (proved prove.Proved, err error) {
	var kept [][]byte
	for _, file := range c.StringSlice("against") {
		_, texts, err := p.keptFile("against", file)
		if err != nil {
			return proved, err
		}
		kept = append(kept, texts...)
	}
	var positions []int64
	err = p.Read(c.Context, func(tx *ledger.Tx) error {
		positions, err = positionsOf(c, tx, ref)
		return err
	})
	if errors.Is(err, commands.ErrNoJob) {
		positions, err = p.archivedPositions(c, ref, err)
	}
	if err != nil {
		return proved, err
	}
	err = p.Read(c.Context, func(tx *ledger.Tx) error {
		proved, err = prove.Prove(c.Context, tx, positions, kept...)
		return err
	})
	return proved, err
}

// proveConsistency ties the last checkpoint of one file to that of another.
func (p *Verbs) proveConsistency(c *cli.Context) (proved prove.Proved, err error) {
	last := func(flag string) ([]byte, error) {
		_, texts, err := p.keptFile(flag, c.String(flag))
		if err != nil {
			return nil, err
		}
		return texts[len(texts)-1], nil
	}
	older, err := last("consistency")
	var newer []byte
	if err == nil && c.IsSet("to") {
		newer, err = last("to")
	}
	if err != nil {
		return proved, err
	}
	err = p.Read(c.Context, func(tx *ledger.Tx) error {
		proved, err = prove.ProveConsistency(c.Context, tx, older, newer)
		return err
	})
	return proved, err
}

// archivedPositions returns the positions of the events of a job that has left the ledger, as positionsOf
// does; the error err, with which it was not found, if the archive has none either.
func (p *Verbs) archivedPositions(c *cli.Context, ref find.Ref, err error) (positions []int64, _ error) {
	service, openErr := p.Open(c.Context)
	if openErr != nil {
		return nil, err
	}
	defer service.Store.Close()
	dir := cli.ArchiveFolder(os.Getenv(cli.ArchiveEnv), service.Store)
	if dir == "" {
		return nil, err
	}
	id, idErr := archived.ID(c.Context, service.Store, ref)
	if idErr != nil || id == "" {
		return nil, cmp.Or(idErr, err)
	}
	events, _, archiveErr := archive.History(c.Context, service.Store, dir, id)
	if errors.Is(archiveErr, commands.ErrNoJob) {
		return nil, err
	}
	for _, e := range events {
		positions = append(positions, e.Pos)
	}
	return positions, archiveErr
}

// positionsOf returns the positions of the events of the job that ref names, or of the event pos:N.
func positionsOf(c *cli.Context, tx *ledger.Tx, ref find.Ref) (positions []int64, err error) {
	if text, ok := strings.CutPrefix(ref.ID, "pos:"); ok {
		pos, err := strconv.ParseInt(text, 10, 64)
		if err != nil || pos < 1 {
			return nil, cli.Usagef("%q is not the place of an event, such as pos:4711", ref.ID)
		}
		return []int64{pos}, nil
	}
	n, err := ref.Number(c.Context, tx)
	if err != nil {
		return nil, err
	}
	for e, err := range tx.Events(c.Context, ledger.Filter{Job: n}) {
		if err != nil {
			return nil, err
		}
		positions = append(positions, e.Pos)
	}
	return positions, nil
}

// joinNumbers lists the first positions.
func joinNumbers(list []int64) string {
	const most = 8
	var words []string
	for _, n := range list[:min(len(list), most)] {
		words = append(words, fmt.Sprintf("pos %d", n))
	}
	if len(list) > most {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

// writeNew writes a file that must not exist, for its owner only.
func writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return cli.WithHint(cli.Exitf(cli.ExitConflict, "%s is there already", file), "give a name that is free")
	}
	if err != nil {
		return cli.Usagef("--output: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}
