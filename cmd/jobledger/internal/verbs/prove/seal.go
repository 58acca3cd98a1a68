package prove

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
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
			"from the ledger: anyone who has both can write another history and sign it.\n\n" +
			"'jobledger seal export' prints the checkpoints that were handed out, and when and to which places. " +
			"'jobledger seal import FILE' takes them into an imported copy of the ledger, which has its events but " +
			"not its seals. A file of a place, as 'verify --against' takes, will do. Each must be of the ledger's " +
			"events, or none is taken (8).",
		Args: "[keygen NAME | export | import FILE]", MaxArgs: 2,
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
			{"jobledger seal export >jobs.seals", "before the ledger moves to another database by export and import"},
			{"jobledger seal import jobs.seals", "and after that"},
		},
		Exits:    []int{cli.ExitNothing, cli.ExitConflict, cli.ExitDiscrepancy, cli.ExitBusy},
		Complete: map[string][]string{"": {"keygen", "export", "import"}},
		Run:      p.seal,
	}
}

func (p *Verbs) seal(c *cli.Context) error {
	if c.NArg() > 0 {
		word := c.Args().First()
		for _, name := range []string{"init", "origin", "rotate", "key", "reason", "out"} {
			if c.IsSet(name) && (name != "out" || word != "keygen") {
				return cli.Usagef("%s takes no --%s", word, name)
			}
		}
		switch {
		case word == "keygen":
			return p.keygen(c)
		case word == "export" && c.NArg() == 1:
			return p.exportSeals(c)
		case word == "import" && c.NArg() == 2:
			return p.importSeals(c)
		case word == "import":
			return cli.WithHint(cli.Usagef("missing FILE"), "jobledger seal import FILE; - is standard input")
		}
		if word == "export" {
			word = c.Args().Get(1)
		}
		return cli.WithHint(cli.Usagef("unexpected argument %q", word), "%s", cli.SeeHelp("seal"))
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
	return p.JSONOrLine(struct {
		Origin string `json:"origin"`
		Size   int64  `json:"size"`
		Root   string `json:"root"`
		Key    string `json:"key,omitempty"`
	}{now.Origin, seal.Size, seal.Root.String(), now.Key}, fmt.Sprintf("%d %s", seal.Size, seal.Root))
}

// exportSeals prints the checkpoints that were handed out.
func (p *Verbs) exportSeals(c *cli.Context) error {
	var file []byte
	var n int
	err := p.Read(c.Context, func(tx *ledger.Tx) (err error) {
		file, n, err = prove.ExportSeals(c.Context, tx)
		return err
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return cli.Exitf(cli.ExitNothing, "no checkpoint was handed out yet")
	case p.JSON:
		return p.PrintJSON(struct {
			Checkpoints int    `json:"checkpoints"`
			Text        string `json:"text"`
		}{n, string(file)})
	}
	_, err = p.Stdout.Write(file)
	return err
}

// importSeals takes in checkpoints that were handed out.
func (p *Verbs) importSeals(c *cli.Context) error {
	file, err := p.input("import", c.Args().Get(1))
	if err != nil {
		return err
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	taken, there, err := prove.ImportSeals(c.Context, service.Store, file)
	switch {
	case errors.Is(err, prove.ErrForked), errors.Is(err, proof.ErrInvalid), errors.Is(err, prove.ErrOtherKey):
		return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "%w", err), "nothing was taken")
	case err != nil:
		return err
	case p.JSON:
		return p.PrintJSON(struct {
			Taken int `json:"taken"`
			There int `json:"already_there"`
		}{taken, there})
	}
	return p.PrintLine(fmt.Sprintf("%s taken, %d already there", words.Count(int64(taken), "checkpoint"), there))
}

func signedWith(key string) string {
	if key == "" {
		return "without a key"
	}
	return "with the key " + key
}

// keygen makes a pair of keys. It needs no ledger.
func (p *Verbs) keygen(c *cli.Context) error {
	if c.NArg() != 2 {
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
