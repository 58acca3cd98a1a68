package main

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/hook"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// maxOverlap is how long an old secret may go on signing.
const maxOverlap = 30 * 24 * time.Hour

// webhookVerb makes, lists, tests and removes webhooks.
func webhookVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "webhook", Group: cli.GroupLedger, Usage: "have 'jobledger serve' send events to other programs",
		About: "add NAME makes a webhook and prints its secret, once. While 'jobledger serve' runs, each event " +
			"that is recorded from then on is sent to --url in a POST, as CloudEvents, signed as Standard Webhooks " +
			"have it; see 'jobledger help webhooks'. list shows all, and test NAME sends one request from here and " +
			"shows what came of it. rotate NAME prints a new secret; the old one signs too until --overlap is over. " +
			"remove NAME ends it.\n" +
			"Deliveries are jobs in the queue webhook.NAME: 'jobledger pause' and 'resume' hold them, 'list' and " +
			"'retry' are for those that failed. The webhooks are in DB.webhooks next to the ledger, readable for " +
			"its owner only, because it has the secrets. They are not part of the ledger. A ledger in PostgreSQL " +
			"needs --webhooks.",
		Args: "add|list|test|rotate|remove [NAME]", MinArgs: 1, MaxArgs: 2, QueuePatterns: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "url", Usage: "add: send to `URL`, https://HOST/PATH",
				EnvVars: []string{"JOBLEDGER_WEBHOOK_URL"}},
			cli.ListFlag("queue", "add: only events of `QUEUE` and its jobs; may be repeated", "q"),
			cli.ListFlag("kind", "add: only events of `KIND`; may be repeated; by default all but heartbeat, "+
				"worker_started and worker_stopped"),
			&cli.StringFlag{Name: "since", Usage: "add: events after `WHEN`", DefaultText: "now"},
			cli.ListFlag("allow", "add: addresses in `CIDR` may be reached, and without TLS, although they are "+
				"not public; may be repeated"),
			cli.WholeFlag("parallel", "add: `N` requests at a time; with 1 in the order of the events",
				hook.DefaultParallel, 1, hook.MaxParallel, ""),
			cli.DurationFlag("timeout", "add: a request may take `D`", "15s", hook.MinTimeout, hook.MaxTimeout, false),
			&cli.StringFlag{Name: "secret", Usage: "add, rotate: the secret is in `FILE`; - is standard input",
				DefaultText: "a new one"},
			cli.DurationFlag("overlap", "rotate: the old secret signs too for `D`", "24h", 0, maxOverlap, true),
			webhooksFlag(),
		},
		Examples: []cli.Example{
			{"jobledger webhook add crm --url https://crm.example.com/jobs -q mail --kind succeeded --kind failed",
				"prints the secret with which the receiver verifies"},
			{"jobledger webhook add local --url http://127.0.0.1:9000/ --allow 127.0.0.0/8",
				"a program on this host"},
			{"jobledger webhook test crm", "one request, now, about nothing"},
			{"jobledger pause -q webhook.crm --reason 'they migrate'", "nothing is sent until resume"},
		},
		Complete: map[string][]string{"": {"add", "list", "test", "rotate", "remove"}, "kind": find.KindNames()},
		Exits:    []int{cli.ExitNothing, cli.ExitConflict, cli.ExitBusy},
		Run:      p.webhook,
	}
}

func webhooksFlag() cli.Flag {
	return &cli.StringFlag{Name: "webhooks", Usage: "the webhooks are in `FILE`", DefaultText: "DB.webhooks",
		EnvVars: []string{"JOBLEDGER_WEBHOOKS"}}
}

// webhooksPath is the file with the webhooks of the ledger; "" for one in PostgreSQL without --webhooks.
func (p *program) webhooksPath(c *cli.Context) string {
	if path := c.String("webhooks"); path != "" {
		return path
	}
	return p.webhooksOf(p.DB)
}

func (p *program) webhooksOf(dsn string) string {
	if ledger.IsServerAddress(dsn) {
		return ""
	}
	path, _ := cli.SplitDSN(dsn)
	return hook.PathOf(path)
}

// webhookFlags are what each action takes, besides --webhooks.
var webhookFlags = map[string]string{"add": "url queue kind since allow parallel timeout secret",
	"rotate": "secret overlap"}

func (p *program) webhook(c *cli.Context) error {
	path := p.webhooksPath(c)
	if path == "" {
		return cli.Usagef("a ledger in PostgreSQL has no file of webhooks next to it: give --webhooks FILE")
	}
	if file, _ := cli.SplitDSN(p.DB); c.String("webhooks") == "" {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return cli.WithHint(cli.Usagef("there is no ledger %s", file), "'jobledger init' makes one")
		}
	}
	action, name := c.Args().First(), c.Args().Get(1)
	for _, flag := range strings.Fields(webhookFlags["add"] + " overlap") {
		if c.IsSet(flag) && !strings.Contains(" "+webhookFlags[action]+" ", " "+flag+" ") {
			if flag == "url" && action != "add" && os.Getenv("JOBLEDGER_WEBHOOK_URL") != "" {
				continue
			}
			return cli.Usagef("--%s is not for %s", flag, action)
		}
	}
	known := name != "" && (action == "add" || action == "test" || action == "rotate" || action == "remove")
	if !known && (action != "list" || name != "") {
		return cli.WithHint(cli.Usagef("webhook takes add NAME, list, test NAME, rotate NAME, or remove NAME"),
			"%s", cli.SeeHelp("webhook"))
	}
	err := p.changeWebhooks(c, path, action, name)
	if none := (*hook.NoEndpointError)(nil); errors.As(err, &none) {
		return cli.WithHint(cli.Exitf(cli.ExitNothing, "%w", err), "'jobledger webhook list' shows all")
	}
	if busy := (*hook.BusyError)(nil); errors.As(err, &busy) {
		return cli.Exitf(cli.ExitBusy, "%w", err)
	}
	return err
}

func (p *program) changeWebhooks(c *cli.Context, path, action, name string) error {
	switch action {
	case "list":
		return p.listWebhooks(c.Context, path)
	case "test":
		return p.testWebhook(c.Context, path, name)
	case "remove":
		return hook.Change(path, func(f *hook.File) error { return f.Remove(name) })
	}
	secret, err := p.newSecret(c.String("secret"))
	if err != nil {
		return err
	}
	if action == "rotate" {
		overlap, _ := cli.DurationValue(c, "overlap")
		now := p.Now()
		err = hook.Change(path, func(f *hook.File) error {
			e, err := f.Find(name)
			if err == nil {
				e.Rotate(secret, now, now.Add(overlap))
			}
			return err
		})
	} else {
		err = p.addWebhook(c, path, name, secret)
	}
	switch {
	case err != nil:
		return err
	case p.JSON:
		return p.PrintJSON(map[string]string{"name": name, "secret": secret.Text()})
	}
	return p.PrintLine(secret.Text())
}

// newSecret is the secret in the file, or a new one.
func (p *program) newSecret(file string) (hook.Secret, error) {
	if file == "" {
		return hook.NewSecret(), nil
	}
	if file != "-" {
		content, err := os.ReadFile(file) // #nosec G304 -- the user names it
		if err != nil {
			return hook.Secret{}, cli.Exitf(cli.ExitUsage, "--secret: %w", err)
		}
		return hook.ParseSecret(string(content))
	}
	content, err := p.ReadBody("secret", file)
	if err != nil {
		return hook.Secret{}, err
	}
	return hook.ParseSecret(string(content))
}

func (p *program) addWebhook(c *cli.Context, path, name string, secret hook.Secret) error {
	e := hook.Endpoint{Name: name, URL: c.String("url"), Queues: c.StringSlice("queue"),
		Kinds: c.StringSlice("kind"), Parallel: c.Int("parallel"),
		Created: p.Now().UTC().Truncate(time.Microsecond), Secrets: []hook.Secret{secret}}
	e.Timeout, _ = cli.DurationValue(c, "timeout")
	for _, text := range c.StringSlice("allow") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return cli.Usagef("--allow: %q is not a range of addresses, such as 127.0.0.0/8 or fd00::/8", text)
		}
		e.Allow = append(e.Allow, prefix.Masked())
	}
	if err := e.Check(); err != nil {
		return err
	}
	err := p.Read(c.Context, func(tx *ledger.Tx) error {
		m, given, err := p.MomentFlag(c, "since", tx)
		if err != nil {
			return err
		}
		if !given {
			if m.Pos, err = tx.Tail(c.Context); err != nil {
				return err
			}
		}
		e.After, err = hook.PlaceAt(c.Context, tx, m.Pos)
		return err
	})
	if err != nil {
		return err
	}
	return hook.Change(path, func(f *hook.File) error { return f.Add(e) })
}

// webhookJSON is a webhook as --json prints it. It has neither the secret nor the path, which may be secret
// too.
type webhookJSON struct {
	Name     string   `json:"name"`
	State    string   `json:"state"`
	Host     string   `json:"host"`
	Queues   []string `json:"queues"`
	Kinds    []string `json:"kinds"`
	Allow    []string `json:"allow"`
	Parallel int      `json:"parallel"`
	Timeout  float64  `json:"timeout"`
	Secrets  int      `json:"secrets"`
	Created  *string  `json:"created"`
	Waiting  int64    `json:"waiting"`
	Sent     int64    `json:"sent"`
	Failed   int64    `json:"failed"`
}

func (p *program) listWebhooks(ctx context.Context, path string) error {
	f, err := hook.Read(path)
	switch {
	case err != nil:
		return err
	case len(f.Endpoints) == 0:
		return cli.WithHint(cli.Exitf(cli.ExitNothing, "there are no webhooks"),
			"'jobledger webhook add' makes one")
	}
	queues := make(map[string]status.Queue)
	err = p.Read(ctx, func(tx *ledger.Tx) error {
		all, err := status.Queues{At: projection.Now(p.Now())}.Read(ctx, tx)
		for _, q := range all {
			queues[q.Name] = q
		}
		return err
	})
	if err != nil {
		return err
	}
	t := &cli.Table{Columns: []cli.Column{{Title: "NAME"}, {Title: "STATE"}, {Title: "HOST"},
		{Title: "QUEUES", Drop: 1}, {Title: "KINDS", Drop: 2}, {Title: "WAITING"}, {Title: "SENT"},
		{Title: "FAILED"}}}
	for _, e := range f.Endpoints {
		j := webhookJSON{e.Name, "sends", e.Host(), orEmpty(e.Queues), orEmpty(e.Kinds), []string{}, e.Parallel,
			e.Timeout.Seconds(), len(e.Secrets), words.TimeOrNull(e.Created), 0, 0, 0}
		for _, a := range e.Allow {
			j.Allow = append(j.Allow, a.String())
		}
		q := queues[e.Queue()]
		if q.Paused {
			j.State = "paused"
		}
		j.Sent, j.Failed = q.Jobs[event.SucceededState], q.Jobs[event.FailedState]
		j.Waiting = q.Jobs[event.Queued] + q.Jobs[event.ClaimedState] + q.Jobs[event.Running]
		if p.JSON {
			if err := p.PrintJSON(j); err != nil {
				return err
			}
			continue
		}
		t.Add(j.Name, j.State, j.Host, orAll(j.Queues, "all"), orAll(j.Kinds, "most"),
			strconv.FormatInt(j.Waiting, 10), strconv.FormatInt(j.Sent, 10), strconv.FormatInt(j.Failed, 10))
	}
	if p.JSON {
		return nil
	}
	return p.PrintTable(t)
}

func orEmpty(list []string) []string { return append([]string{}, list...) }

func orAll(list []string, all string) string {
	if len(list) == 0 {
		return all
	}
	return strings.Join(list, ",")
}

// webhookTestJSON is the result of a test as --json prints it.
type webhookTestJSON struct {
	ID     string  `json:"id"`
	Status *int    `json:"status"` // null: there was no answer
	Code   *string `json:"error_code"`
	Detail *string `json:"error_detail"`
	Took   float64 `json:"took"`
}

func (p *program) testWebhook(ctx context.Context, path, name string) error {
	f, err := hook.Read(path)
	if err != nil {
		return err
	}
	e, err := f.Find(name)
	if err != nil {
		return err
	}
	id, a, err := hook.Test(ctx, f.Source, *e, p.Now())
	if err != nil {
		return err
	}
	if p.JSON {
		j := webhookTestJSON{id, words.OrNull(a.Status), words.TextOrNull(a.Code), words.TextOrNull(a.Detail),
			a.Took.Seconds()}
		if err := p.PrintJSON(j); err != nil {
			return err
		}
	}
	if !a.OK() {
		return cli.Exitf(cli.ExitConflict, "%s: %s: %s", e.Host(), a.Code, a.Detail)
	}
	if p.JSON {
		return nil
	}
	return p.PrintLine(e.Host() + " answered " + strconv.Itoa(a.Status) + " in " +
		words.Duration(a.Took))
}
