package jobverb

import (
	"net/url"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
)

// Asked returns which of fields the line has flags for, with their values, as a question has them.
func Asked(p *cli.Program, c *cli.Context, fields []string) (asked url.Values, err error) {
	asked = make(url.Values)
	for _, field := range fields {
		name := fault.FlagOf(field)
		if !c.IsSet(name) {
			continue
		}
		if asked[field] = c.StringSlice(name); asked[field] == nil {
			asked[field] = []string{c.String(name)}
		}
	}
	return asked, p.HearTimes(asked)
}

// FilterFlags returns the flags that select jobs and mean nothing else in any verb; states are the values of
// --state that its help offers.
func FilterFlags(states []string) []cli.Flag {
	return []cli.Flag{
		cli.ListFlag("state", "only `STATE`: "+strings.Join(states, ", ")),
		cli.ListFlag("tag", "only with this tag, as `K=V`"),
		&cli.StringFlag{Name: "group", Usage: "only of this `GROUP`"},
		&cli.StringFlag{Name: "from", Usage: "only those enqueued at or after `TIME`; see --by"},
		&cli.StringFlag{Name: "to", Usage: "only those enqueued at or before `TIME`"},
		&cli.StringFlag{Name: "by", Usage: "`WHAT` --from and --to are about: " + strings.Join(find.Bys, ", "),
			DefaultText: "failed with --failure or --last-failure, else enqueued"},
		&cli.StringFlag{Name: "error", Usage: "only where the last failure has this `CODE`"},
		cli.WholeFlag("exit", "only where the command of the last failure exited with `N`", 0, 0, 255, "any"),
		&cli.StringFlag{Name: "failure", Usage: "only what met a failure with this fingerprint, `F1`"},
		&cli.StringFlag{Name: "last-failure", Usage: "only where the last failure has this fingerprint, `F1`"},
		&cli.StringFlag{Name: "host", Usage: "only where the owner, or the last one, ran on this `HOST`"},
		&cli.StringFlag{Name: "find",
			Usage: "only what all of these `TERMS` select: WORD, KEY:VALUE or -TERM"},
	}
}

// Window reads --from and --to. Without them the question is about the whole ledger, now.
func Window(p *cli.Program, c *cli.Context, tx *ledger.Tx) (export.Window, error) {
	from, to, err := p.FromTo(c)
	if err != nil {
		return export.Window{}, err
	}
	return export.Between(c.Context, tx, from, to)
}

// about is the paragraph in the help of every verb that takes a job.
const about = "\nA JOB is named by its number (the column NO of 'list' on a terminal: the position of its " +
	"first event), by its id, by the beginning of it, or by its end as in …Q7ZK (or " +
	"...Q7ZK); in place of JOB, --key and --queue name it, or --last: the newest job, with --queue that of " +
	"the queue. Without --queue a --key must be in one queue only."

// ByName returns v, whose arguments are jobs, with the flags that may take their place and what the help says
// of them.
func ByName(v cli.Verb) cli.Verb {
	v.Flags = append(v.Flags[:len(v.Flags):len(v.Flags)],
		&cli.StringFlag{Name: "key", Usage: "in place of JOB: the job with this `KEY`"},
		&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE` of --key or --last"},
		&cli.BoolFlag{Name: "last", Usage: "in place of JOB: the newest job, or that of --queue",
			DisableDefaultText: true})
	v.InPlace, v.InPlaceHint = []string{"key", "queue", "last"}, find.Forms
	v.About = strings.TrimPrefix(v.About+about, "\n")
	return v
}

// RefsOf returns the jobs that the line names, at least one unless the verb takes lines without any.
func RefsOf(c *cli.Context) (refs []find.Ref, err error) {
	key, queue, last := c.String("key"), c.String("queue"), c.Bool("last")
	switch {
	case key != "" && last:
		err = cli.Usagef("--key and --last cannot be combined")
	case (key != "" || last) && c.Args().Present():
		err = cli.Usagef("%q and --%s cannot be combined: both name a job", c.Args().First(),
			map[bool]string{true: "last", false: "key"}[last])
	case key != "" || last:
		return []find.Ref{{Key: key, Queue: queue, Last: last}}, nil
	case queue != "":
		err = cli.Usagef("--queue alone names no job: give --key KEY or --last")
	}
	if err != nil {
		return nil, cli.WithHint(err, "%s", find.Forms)
	}
	return words.Of(c.Args().Slice(), find.Typed), nil
}

// RefOf is [RefsOf] for a verb that takes one job; ok is false if the line names none.
func RefOf(c *cli.Context) (r find.Ref, ok bool, err error) {
	refs, err := RefsOf(c)
	if err != nil || len(refs) == 0 {
		return r, false, err
	}
	return refs[0], true, nil
}
