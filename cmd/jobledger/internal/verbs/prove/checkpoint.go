package prove

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
)

// Checkpoint prints what the ledger is now, for a place outside of it.
func (p *Verbs) Checkpoint() cli.Verb {
	return cli.Verb{
		Name: "checkpoint", Group: cli.GroupLedger, Usage: "print what the ledger is now, to be kept elsewhere",
		About: "A checkpoint is a few lines of text: the ledger's name, how many events it has, and the root of " +
			"their hash tree. Kept where those who can write the ledger cannot reach it, it shows later whether the " +
			"events are still the same: 'jobledger verify --against'. The text is that of C2SP's checkpoints; --key " +
			"signs it.\n" +
			"--exec runs a command by the shell, with the text on its standard input; --to appends the text to a " +
			"file. The checkpoint counts as handed out, and is recorded, when every command ended with 0 and every " +
			"file was synced. What is only printed does not count.\n" +
			"Each command and file is a place of its own, and gets a checkpoint unless it got one of the same " +
			"events, signed with the same keys. If no place is left, nothing is printed (3). --place gives the " +
			"places of a line a name, for --list; otherwise it is exec: or to: and a digest of the line or file. " +
			"'jobledger help security' has commands for --exec.",
		Flags: []cli.Flag{
			cli.ListFlag("key", "sign with the private key in `FILE`; may be repeated, as while keys are changed"),
			cli.ListFlag("exec", "hand it out to `CMD`, a line for the shell; may be repeated"),
			cli.ListFlag("to", "append it to `FILE`; may be repeated"),
			&cli.StringFlag{Name: "place", Usage: "with --exec or --to: the `NAME` of the place"},
			&cli.BoolFlag{Name: "list", Usage: "print the places, and what each got last"},
		},
		Examples: []cli.Example{
			{"jobledger checkpoint", "print it, without recording that"},
			{"jobledger checkpoint --key ~/jobs.key --exec \"ssh audit 'cat >>jobs.checkpoints'\"",
				"keep it on another machine; for cron, every hour"},
			{"jobledger checkpoint --to /mnt/worm/jobs.checkpoints", "on a disk that cannot be overwritten"},
			{"jobledger checkpoint --list", "what each place got last"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict, cli.ExitDiscrepancy, cli.ExitBusy},
		Run:   p.handOut,
	}
}

func (p *Verbs) handOut(c *cli.Context) error {
	targets, err := targetsOf(c)
	switch {
	case err != nil:
		return err
	case c.Bool("list") && (len(targets) > 0 || c.IsSet("key")):
		return cli.Usagef("--list prints only; it takes no --exec, --to and --key")
	case c.Bool("list"):
		return p.listPlaces(c.Context)
	}
	var keys []string
	for _, file := range c.StringSlice("key") {
		key, err := prove.PrivateKey(file)
		if err != nil {
			return cli.Usagef("--key: %w", err)
		}
		keys = append(keys, key)
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	head, err := prove.NextHead(c.Context, service.Store)
	if err != nil {
		return handOutError(err)
	}
	text, err := head.SignWith(keys)
	if err != nil {
		return handOutError(err)
	}
	if len(keys) == 0 && len(head.Keys) > 0 {
		p.Message("the checkpoint is not signed, though the ledger names a key: --key FILE signs it")
	}
	var places []string
	for _, t := range targets {
		places = append(places, t.place)
	}
	due, err := head.Due(c.Context, service.Store, keys, places)
	if err != nil {
		return handOutError(err)
	}
	targets = slices.DeleteFunc(targets, func(t target) bool { return !slices.Contains(due, t.place) })
	if err := p.handTo(c.Context, service.Store, text, targets); err != nil {
		return handOutError(err)
	}
	if len(due) > 0 {
		if err := prove.RecordHandedOut(c.Context, service.Store, head, text, due...); err != nil {
			return err
		}
	}
	if !p.JSON {
		_, err := p.Stdout.Write(text)
		return err
	}
	return p.PrintJSON(struct {
		Origin    string   `json:"origin"`
		Size      int64    `json:"size"`
		Root      string   `json:"root"`
		Signers   []string `json:"signers"`
		HandedOut bool     `json:"handed_out"`
		Text      string   `json:"text"`
	}{head.Origin, head.Size, head.Root.String(), append([]string{}, proof.Signers(text)...), len(due) > 0,
		string(text)})
}

// target is what a checkpoint is given to: a command, or a file.
type target struct {
	command bool
	text    string // the line for the shell, or the file's name
	place   string
}

// targetsOf reads --exec, --to and --place.
func targetsOf(c *cli.Context) (list []target, err error) {
	add := func(flag string, command bool) {
		for _, text := range c.StringSlice(flag) {
			place := c.String("place")
			if place == "" { // a line may hold a secret, so it is not the name
				place = fmt.Sprintf("%s:%.4x", flag, sha256.Sum256([]byte(text)))
			}
			list = append(list, target{command, text, place})
			if strings.TrimSpace(text) == "" {
				err = cli.Usagef("--%s is empty", flag)
			}
		}
	}
	add("exec", true)
	add("to", false)
	if c.IsSet("place") {
		if len(list) == 0 {
			return nil, cli.Usagef("--place needs --exec or --to")
		}
		if placeErr := prove.CheckPlace(c.String("place")); placeErr != nil {
			return nil, cli.Usagef("--place: %w", placeErr)
		}
	}
	return list, err
}

// listPlaces prints what each place got last.
func (p *Verbs) listPlaces(ctx context.Context) error {
	type place struct {
		Place   *string   `json:"place"`
		Size    int64     `json:"size"`
		Root    string    `json:"root"`
		At      time.Time `json:"at"`
		Signers []string  `json:"signers"`
		Count   int64     `json:"count"` // of the checkpoints that it got
	}
	var places []place
	err := p.Read(ctx, func(tx *ledger.Tx) error {
		places = nil
		for s, err := range tree.Seals(ctx, tx) {
			if err != nil {
				return err
			}
			if s.Note == "" {
				continue
			}
			name := words.TextOrNull(s.Place)
			i := slices.IndexFunc(places, func(one place) bool {
				return (name == nil) == (one.Place == nil) && (name == nil || *name == *one.Place)
			})
			if i < 0 {
				i, places = len(places), append(places, place{Place: name})
			}
			one := &places[i]
			if one.Count++; s.Size >= one.Size {
				one.Size, one.Root, one.At = s.Size, s.Root.String(), s.At
				one.Signers = append([]string{}, proof.Signers([]byte(s.Note))...)
			}
		}
		return nil
	})
	if err == nil && len(places) == 0 {
		err = cli.Exitf(cli.ExitNothing, "no checkpoint was handed out yet")
	}
	if err != nil {
		return err
	}
	t := &words.Table{Columns: []words.Column{{Title: "PLACE"}, {Title: "EVENTS", Right: true},
		{Title: "HANDED OUT"}, {Title: "TIMES", Right: true}, {Title: "SIGNED BY"}}}
	return cli.PrintRows(p.Program, t, places, func(one place) any { return one }, func(one place) []string {
		name := "(not known)"
		if one.Place != nil {
			name = *one.Place
		}
		return []string{name, fmt.Sprint(one.Size), words.Time(one.At.In(p.Now().Location())),
			fmt.Sprint(one.Count), strings.Join(one.Signers, ", ")}
	})
}

// handTo gives text to each of targets. The first error ends it.
func (p *Verbs) handTo(ctx context.Context, store *ledger.Store, text []byte, targets []target) error {
	for _, t := range targets { // before anything is handed out
		if t.command {
			continue
		}
		if err := prove.CheckFile(ctx, store, t.text); err != nil {
			return err
		}
	}
	stopped, end := jobcmd.Stoppable(ctx)
	defer end()
	for _, t := range targets {
		var err error
		if t.command {
			command := exec.CommandContext(stopped, "sh", "-c", t.text) // #nosec G204 -- the user's own line
			command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text), p.Stderr, p.Stderr
			if err = command.Run(); err != nil {
				err = cli.Exitf(cli.ExitUnexpected, "--exec %s: %w", t.text, err)
			}
		} else {
			err = prove.AppendFile(t.text, text)
		}
		if err != nil {
			return cli.WithHint(err, "the checkpoint does not count as handed out; the same line tries it again")
		}
	}
	return nil
}

// handOutError adds exit codes and hints to the errors of package prove.
func handOutError(err error) error {
	switch {
	case errors.Is(err, prove.ErrNothingNew):
		return cli.Exitf(cli.ExitNothing, "%w", err)
	case errors.Is(err, prove.ErrOtherKey):
		return cli.WithHint(cli.Usagef("%w", err), "'jobledger seal --rotate --key FILE' names the key of FILE")
	case errors.Is(err, prove.ErrForked):
		return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "%w", err),
			"nothing was handed out; 'jobledger verify --against FILE' says more")
	case errors.Is(err, proof.ErrInvalid):
		return cli.WithHint(cli.Usagef("--to: %w", err),
			"nothing was handed out; give a file that holds checkpoints only")
	}
	return err
}
