package operate

import (
	"math"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/inbox"
)

// Inbox lists the rows by which programs ask for jobs, and decides about those that were refused.
func (p *Verbs) Inbox() cli.Verb {
	return cli.Verb{
		Name: "inbox", Group: cli.GroupOperate, Usage: "list, retry and drop rows that are not jobs yet",
		About: "A program asks for a job within its own transaction by a row of the table inbox, in the database " +
			"of the ledger: see 'jobledger help go'. The next claim of a worker or sweep makes a job of it. A row " +
			"that the ledger does not take, because its key belongs to a job with another payload, it waits for a " +
			"job that does not exist, or it is invalid, is kept with the reason.\n" +
			"list shows the rows that were refused, then those that wait, each in their order. retry has refused " +
			"rows tried again, behind all others; drop removes them for good, with their payloads. An ID is the " +
			"whole id of the job. The rows are not part of the ledger: no event speaks of them.",
		Args: "list|retry|drop [ID…]", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "refused", Usage: "list: only rows that were refused"},
			cli.WholeFlag("limit", "list: at most `N` rows, 0 for all", 50, 0, math.MaxInt32-1, "", "n"),
			cli.WideFlag(),
		},
		Examples: []cli.Example{
			{"jobledger inbox list", "what programs asked for, and is not a job yet"},
			{"jobledger inbox list --refused --json", "an object for each refused row, with the reason"},
			{"jobledger inbox retry 01J9Z3NDEKTSV4RRFFQ69G5FAV", "once the reason has gone"},
			{"jobledger inbox drop 01J9Z3NDEKTSV4RRFFQ69G5FAV", "it never becomes a job"},
		},
		Complete: map[string][]string{"": {"list", "retry", "drop"}},
		Exits:    []int{cli.ExitNothing, cli.ExitBusy},
		Run:      p.inbox,
	}
}

func (p *Verbs) inbox(c *cli.Context) error {
	action, ids := c.Args().First(), c.Args().Tail()
	for _, flag := range []string{"refused", "limit", "wide"} {
		if c.IsSet(flag) && action != "list" {
			return cli.Usagef("--%s is for list", flag)
		}
	}
	switch {
	case action == "list" && len(ids) == 0:
		return p.listInbox(c, c.Int("limit"))
	case action == "retry" && len(ids) > 0:
		return p.decideRefused(c, ids, "waiting", inbox.Retry,
			"the row of job %s waits again; the next claim of a worker or sweep moves it")
	case action == "drop" && len(ids) > 0:
		return p.decideRefused(c, ids, "dropped", inbox.Drop, "the row of job %s is removed")
	}
	return cli.WithHint(cli.Usagef("inbox takes list, retry ID…, or drop ID…"), "%s", cli.SeeHelp("inbox"))
}

func (p *Verbs) listInbox(c *cli.Context, limit int) error {
	most := math.MaxInt32
	if limit > 0 {
		most = limit + 1
	}
	var refused []inbox.Refused
	var waiting []inbox.Row
	err := p.Read(c.Context, func(tx *ledger.Tx) (err error) {
		refused, err = inbox.AllRefused(c.Context, tx, 0, most)
		if err == nil && !c.Bool("refused") && len(refused) < most {
			waiting, err = inbox.All(c.Context, tx, most-len(refused))
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(refused)+len(waiting) == 0 && c.Bool("refused"):
		return cli.Exitf(cli.ExitNothing, "no row of the inbox was refused")
	case len(refused)+len(waiting) == 0:
		return cli.Exitf(cli.ExitNothing, "the inbox is empty")
	}
	more := len(refused)+len(waiting) == most
	if more {
		refused = refused[:min(len(refused), limit)]
		waiting = waiting[:min(len(waiting), limit-len(refused))]
	}
	if p.JSON {
		if err = cli.PrintJSONOf(p.Program, refused, print.NewRefusedJSON); err == nil {
			err = cli.PrintJSONOf(p.Program, waiting, print.NewWaitingJSON)
		}
	} else {
		err = p.PrintTable(print.Inbox(refused, waiting, p.Now()).Widened(c.Bool("wide")))
	}
	if err == nil && more {
		return p.MessageAfter("%s; --limit 0 shows all", words.MoreThan(limit, "row"))
	}
	return err
}

// decidedJSON is what inbox retry and drop print with --json.
type decidedJSON struct {
	ID    string `json:"id"`
	State string `json:"state"` // waiting or dropped
}

// decideRefused calls decide for the refused row of each job, and fails in the end if one has none.
func (p *Verbs) decideRefused(c *cli.Context, ids []string, state string,
	decide func(*ledger.Tx, event.JobID) (int64, error), done string) error {
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	var found, none []string
	err = service.Store.Write(c.Context, func(tx *ledger.Tx) error {
		found, none = nil, nil
		for _, id := range ids {
			id = strings.ToUpper(id)
			n, err := decide(tx, event.JobID(id))
			if err != nil {
				return err
			}
			if n > 0 {
				found = append(found, id)
			} else {
				none = append(none, id)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range found {
		p.Message(done, id)
		if err := p.JSONOnly(decidedJSON{id, state}); err != nil {
			return err
		}
	}
	if len(none) > 0 {
		return cli.WithHint(cli.Exitf(cli.ExitNothing, "no row was refused of the job %s",
			strings.Join(none, ", ")), "'jobledger inbox list' shows the rows")
	}
	return nil
}
