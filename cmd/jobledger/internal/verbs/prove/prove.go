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
	return jobverb.ByName(cli.Verb{
		Name: "prove", Group: cli.GroupLedger, Usage: "prove to others what happened to a job",
		About: "The proof is text: the job's events, for each the hashes that lead from it to the root of the " +
			"ledger's hash tree, and a checkpoint. It is the last checkpoint that was handed out, or where an event " +
			"came later, one of the ledger as it is now, which is not signed. 'jobledger verify --proof FILE' " +
			"checks it without the ledger, and so does a script of 25 lines ('jobledger help security').\n" +
			"In place of a job, pos:N proves one event. A proof has no payloads and results, only their digests, " +
			"and stays right when they are erased. It does show keys, tags, error details and names.",
		Args: "JOB", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write it to a new `FILE`"},
		},
		Examples: []cli.Example{
			{"jobledger prove 01KDY9FY88 -o job.proof", "all events of a job"},
			{"jobledger prove --key invoice-17 -q mail >invoice.proof", "JOB is named as everywhere"},
			{"jobledger prove pos:4711", "a single event, such as that of a pause"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict, cli.ExitNoJob},
		Run:   p.prove,
	})
}

func (p *Verbs) prove(c *cli.Context) error {
	ref, _, err := jobverb.RefOf(c)
	if err != nil {
		return err
	}
	if c.IsSet("output") && c.String("output") == "" {
		return cli.Usagef("--output is empty")
	}
	var proved prove.Proved
	err = p.Read(c.Context, func(tx *ledger.Tx) error {
		positions, err := positionsOf(c, tx, ref)
		if err == nil {
			proved, err = prove.Prove(c.Context, tx, positions)
		}
		return err
	})
	if errors.Is(err, commands.ErrNoJob) {
		var positions []int64
		if positions, err = p.archivedPositions(c, ref, err); err == nil {
			err = p.Read(c.Context, func(tx *ledger.Tx) (err error) {
				proved, err = prove.Prove(c.Context, tx, positions)
				return err
			})
		}
	}
	switch {
	case errors.Is(err, tree.ErrBeyond):
		return cli.Exitf(cli.ExitNothing, "%s is behind the end of the ledger", c.Args().First())
	case err != nil:
		return err
	}
	if !proved.HandedOut {
		p.Message(
			"no checkpoint was handed out since, so the proof has one of its own, which is not signed; after " +
				"'jobledger checkpoint --exec …' prove it again")
	}
	what := fmt.Sprintf("%s at %s, in a ledger of %d", words.Count(int64(len(proved.Positions)), "event"),
		joinNumbers(proved.Positions), proved.Size)
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
	}{proved.Positions, proved.Origin, proved.Size, proved.Root.String(), proved.HandedOut, string(proved.Text)})
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
