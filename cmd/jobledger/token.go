package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
)

// maxTokenLife is how long a token may last that is not for ever.
const maxTokenLife = 10 * 366 * 24 * time.Hour

// tokenVerb makes, lists and revokes the tokens of a server.
func tokenVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "token", Group: cli.GroupLedger, Usage: "let programs use 'jobledger serve' from elsewhere",
		About: "create NAME prints a token, once; a program sends it as 'Authorization: Bearer TOKEN', and " +
			"events name it as http:NAME. It is for the scopes and queues that the flags say, and for nothing else. " +
			"list shows what was made, and revoke NAME ends it at once, even on a running server.\n" +
			"Scopes: read is all that is known of jobs but payloads, results and output, and bodies is these; " +
			"enqueue adds jobs; work claims them, with their payloads, and says how they went; operate is cancel, " +
			"retry, pause and the like; erase; metrics; admin is profiles of the server. A QUEUE may end " +
			"with *, as in 'img-*', and * alone is every queue. Without that, read needs requests that name a queue " +
			"or a job.\n" +
			"The tokens are in DB.access next to the ledger, as SHA-256, readable for its owner only. They are not " +
			"part of the ledger: backup and export leave them out. A ledger in PostgreSQL needs --access.",
		Args: "create|list|revoke [NAME]", MinArgs: 1, MaxArgs: 2, QueuePatterns: true,
		Flags: []cli.Flag{
			cli.ListFlag("scope", "create: what it permits: `SCOPE`; may be repeated"),
			cli.ListFlag("queue", "create: for `QUEUE`; may be repeated", "q"),
			&cli.BoolFlag{Name: "certificate", Usage: "create: for a client certificate whose common name is NAME; " +
				"no token is printed"},
			cli.DurationFlag("expires", "create: it ends in `D`", "", time.Minute, maxTokenLife, false),
			accessFlag(),
		},
		Examples: []cli.Example{
			{"jobledger token create web --scope enqueue --queue mail --queue 'img-*' --expires 90d >web.token",
				"for a producer; the file has the token"},
			{"jobledger token create build7 --scope work --queue '*'", "for the workers of a host"},
			{"jobledger token create build8 --scope work --queue '*' --certificate",
				"for a host with a certificate for build8, with 'serve --client-ca'"},
			{"jobledger token revoke web", "it is refused from now on"},
		},
		Complete: map[string][]string{"": {"create", "list", "revoke"}, "scope": scopeNames(access.Scopes)},
		Exits:    []int{cli.ExitNothing, cli.ExitConflict},
		Run:      p.token,
	}
}

func scopeNames(scopes []access.Scope) []string {
	return words.Of(scopes, func(s access.Scope) string { return string(s) })
}

func accessFlag() cli.Flag {
	return &cli.StringFlag{Name: "access", Usage: "the tokens are in `FILE`", DefaultText: "DB.access",
		EnvVars: []string{"JOBLEDGER_ACCESS"}}
}

// accessPath is the file with the tokens of the ledger; "" for one in PostgreSQL without --access.
func (p *program) accessPath(c *cli.Context) string {
	if path := c.String("access"); path != "" {
		return path
	}
	if ledger.IsServerAddress(p.DB) {
		return ""
	}
	path, _ := cli.SplitDSN(p.DB)
	return access.PathOf(path)
}

func (p *program) token(c *cli.Context) error {
	path := p.accessPath(c)
	if path == "" {
		return cli.Usagef("a ledger in PostgreSQL has no file of tokens next to it: give --access FILE")
	}
	if file, _ := cli.SplitDSN(p.DB); c.String("access") == "" {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return cli.WithHint(cli.Usagef("there is no ledger %s", file), "'jobledger init' makes one")
		}
	}
	action, name := c.Args().First(), c.Args().Get(1)
	create := action == "create"
	for _, flag := range []string{"scope", "queue", "expires", "certificate"} {
		if c.IsSet(flag) && !create {
			return cli.Usagef("--%s is for create", flag)
		}
	}
	switch {
	case action == "list" && name == "":
		return p.listTokens(path)
	case create && name != "":
		return p.createToken(c, path, name)
	case action == "revoke" && name != "":
		g, err := access.Revoke(path, name, p.Now())
		if none := (*access.NoTokenError)(nil); errors.As(err, &none) {
			return cli.WithHint(cli.Exitf(cli.ExitNothing, "%w", err), "'jobledger token list' shows all")
		}
		if err != nil {
			return err
		}
		return p.printGrant(g, "")
	}
	return cli.WithHint(cli.Usagef("token takes create NAME, list, or revoke NAME"), "%s", cli.SeeHelp("token"))
}

func (p *program) createToken(c *cli.Context, path, name string) error {
	request := access.Request{Name: name, Queues: c.StringSlice("queue")}
	for _, text := range c.StringSlice("scope") {
		s, err := access.ParseScope(text)
		if err != nil {
			return err
		}
		request.Scopes = append(request.Scopes, s)
	}
	if len(request.Scopes) == 0 || len(request.Queues) == 0 {
		return cli.WithHint(cli.Usagef("create needs --scope and --queue, at least one of each"),
			"--queue '*' is every queue")
	}
	if life, given := cli.DurationValue(c, "expires"); given {
		request.Expires = p.Now().Add(life)
	}
	token, g, err := access.Create(path, request, p.Now())
	if err != nil {
		return err
	}
	if c.Bool("certificate") {
		token = "" // it is never used
	}
	return p.printGrant(g, token)
}

// grantJSON is a token as --json prints it.
type grantJSON struct {
	Token   string         `json:"token,omitempty"` // only when it is made
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	State   string         `json:"state"`
	Scopes  []access.Scope `json:"scopes"`
	Queues  []string       `json:"queues"`
	Created *string        `json:"created"`
	Expires *string        `json:"expires"`
	Revoked *string        `json:"revoked"`
	Used    *string        `json:"used"` // the last day, in UTC
}

func (p *program) grantJSON(g access.Grant, token string) grantJSON {
	return grantJSON{token, g.ID, g.Name, g.State(p.Now()), g.Scopes, g.Queues, words.TimeOrNull(g.Created),
		words.TimeOrNull(g.Expires), words.TimeOrNull(g.Revoked), words.TextOrNull(g.Used)}
}

func (p *program) printGrant(g access.Grant, token string) error {
	switch {
	case p.JSON:
		return p.PrintJSON(p.grantJSON(g, token))
	case token != "":
		return p.PrintLine(token)
	}
	return nil
}

func (p *program) listTokens(path string) error {
	grants, err := access.List(path)
	switch {
	case err != nil:
		return err
	case len(grants) == 0:
		return cli.WithHint(cli.Exitf(cli.ExitNothing, "there are no tokens"), "'jobledger token create' makes one")
	}
	t := &cli.Table{Columns: []cli.Column{{Title: "NAME"}, {Title: "ID", Drop: 3}, {Title: "STATE"},
		{Title: "SCOPES"}, {Title: "QUEUES"}, {Title: "EXPIRES", Drop: 1}, {Title: "USED", Drop: 2}}}
	return cli.PrintRows(p.Program, t, grants, func(g access.Grant) any { return p.grantJSON(g, "") }, func(
		g access.Grant) []string {
		expires, used := "never", "-"
		if !g.Expires.IsZero() {
			expires = words.Time(g.Expires.In(p.Now().Location()))
		}
		if g.Used != "" {
			used = g.Used
		}
		return []string{g.Name, g.ID, g.State(p.Now()), strings.Join(scopeNames(g.Scopes), ","),
			strings.Join(g.Queues, ","), expires, used}
	})
}
