package prove

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/ledger/proof"
	"jobledger/projection"
)

func (p *Verbs) Seal() cli.Verb {
	return cli.Verb{
		Name: "seal", Group: cli.GroupLedger, Usage: "seal the events: print the root of their hash tree",
		About: "The root is 32 bytes that no other history has. Keep it outside of the ledger, to show later " +
			"that no event up to there was changed. seal prints the number of events and the root. Sealing is off " +
			"until 'jobledger seal --init', which is an event; from then on sweepers ('work', 'sweep') add the " +
			"hashes of whole blocks of 256 events once a minute, and verify compares every event with them.\n\n" +
			"'jobledger seal keygen NAME' makes a pair of Ed25519 keys that sign checkpoints. The private key goes " +
			"to stdout, or to a file that only you can read, the public key to stderr. Keep the private key away " +
			"from the ledger: who has both can write another history and sign it.",
		Args: "[keygen NAME]", MaxArgs: 2,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "init", Usage: "switch sealing on"},
			&cli.StringFlag{Name: "origin", Usage: "with --init: the ledger's `NAME` in its checkpoints; by default " +
				"jobledger/ and a new id"},
			&cli.BoolFlag{Name: "rotate", Usage: "sign checkpoints with another key from now on, which --key names"},
			&cli.StringFlag{Name: "key", Usage: "with --init or --rotate: the `FILE` of the public key, or of the " +
				"private one"},
			&cli.StringFlag{Name: "out", Usage: "with keygen: write the private key to a new `FILE`"},
			jobverb.ReasonFlag(),
		},
		Examples: []cli.Example{
			{"jobledger seal --init --reason 'for the audit'",
				"switch sealing on, print the number of events and the root"},
			{"jobledger seal", "seal all events up to now"},
			{"jobledger seal keygen jobs.example.com --out ~/jobs.key 2> jobs.pub", "make keys"},
			{"jobledger seal --rotate --key jobs.pub", "record the key that signs from now on"},
		},
		Exits:    []int{cli.ExitConflict, cli.ExitBusy},
		Complete: map[string][]string{"": {"keygen"}},
		Run:      p.seal,
	}
}

func (p *Verbs) seal(c *cli.Context) error {
	if c.NArg() > 0 {
		return p.keygen(c)
	}
	starts, rotates := c.Bool("init"), c.Bool("rotate")
	switch {
	case starts && rotates:
		return cli.Usagef("--init and --rotate cannot be combined")
	case c.IsSet("out"):
		return cli.Usagef("--out is for 'jobledger seal keygen NAME'")
	case c.IsSet("origin") && !starts:
		return cli.Usagef("--origin needs --init")
	case c.IsSet("reason") && !starts && !rotates:
		return cli.Usagef("--reason needs --init or --rotate")
	case c.IsSet("key") && !starts && !rotates:
		return cli.Usagef("--key needs --init or --rotate")
	case rotates && !c.IsSet("key"):
		return cli.Usagef("--rotate needs --key")
	}
	key, err := "", error(nil)
	if c.IsSet("key") {
		if key, err = prove.PublicKey(c.String("key")); err != nil {
			return cli.Usagef("%w", err)
		}
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	switch {
	case starts:
		_, err = service.StartSealing(c.Context, p.Actor, c.String("origin"), key, c.String("reason"))
	case rotates:
		_, err = service.RotateSealingKey(c.Context, p.Actor, key, c.String("reason"))
	}
	if err != nil {
		return err
	}
	seal, err := service.Seal(c.Context)
	if err != nil {
		return err
	}
	now, err := projection.ReadSealing(c.Context, service.Store)
	if err != nil {
		return err
	}
	if starts || rotates {
		p.Message("sealing as %s, %s", now.Origin, signedWith(now.Key))
	}
	if !p.JSON {
		return p.PrintLine(fmt.Sprintf("%d %s", seal.Size, seal.Root))
	}
	return p.PrintJSON(struct {
		Origin string `json:"origin"`
		Size   int64  `json:"size"`
		Root   string `json:"root"`
		Key    string `json:"key,omitempty"`
	}{now.Origin, seal.Size, seal.Root.String(), now.Key})
}

func signedWith(key string) string {
	if key == "" {
		return "without a key"
	}
	return "with the key " + key
}

// keygen makes a pair of keys. It needs no ledger.
func (p *Verbs) keygen(c *cli.Context) error {
	for _, name := range []string{"init", "origin", "rotate", "key", "reason"} {
		if c.IsSet(name) {
			return cli.Usagef("keygen takes no --%s", name)
		}
	}
	switch {
	case c.Args().First() != "keygen":
		return cli.WithHint(cli.Usagef("unexpected argument %q", c.Args().First()), "%s", cli.SeeHelp("seal"))
	case c.NArg() != 2:
		return cli.WithHint(cli.Usagef("missing NAME"),
			"jobledger seal keygen NAME, most often the ledger's origin")
	}
	private, public, err := proof.GenerateKey(c.Args().Get(1))
	if err != nil {
		return cli.Usagef("%w", err)
	}
	path := c.String("out")
	if c.IsSet("out") {
		if strings.TrimSpace(path) == "" {
			return cli.Usagef("--out is empty")
		}
		err = prove.WriteKey(path, private)
		if errors.Is(err, fs.ErrExist) {
			return cli.Exitf(cli.ExitConflict, "%s exists already; keygen overwrites no file", path)
		}
		if err != nil {
			return err
		}
	}
	if p.JSON {
		made := struct {
			Private string `json:"private,omitempty"`
			File    string `json:"file,omitempty"`
			Public  string `json:"public"`
		}{private, path, public}
		if path != "" {
			made.Private = ""
		}
		return p.PrintJSON(made)
	}
	if path == "" {
		err = p.PrintLine(private)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stderr, public)
	return err
}
