package operate

import (
	"context"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/commands"
	"jobledger/ledger"
)

func (p *Verbs) Pause() cli.Verb {
	return cli.Verb{
		Name: "pause", Group: cli.GroupOperate, Usage: "stop handing out the jobs of a queue",
		About: "Jobs that run go on, new ones are accepted, none is claimed until 'jobledger resume'. A queue " +
			"that is paused already stays so.",
		Flags: queueFlags("pause"),
		Examples: []cli.Example{
			{"jobledger pause -q mail --reason 'smtp is down'", "nothing is claimed from mail any more"},
		},
		Exits: []int{cli.ExitBusy},
		Run: func(c *cli.Context) error {
			return p.eachQueue(c, (*commands.Service).Pause)
		},
	}
}

func queueFlags(what string) []cli.Flag {
	queues := cli.ListFlag("queue", what+" `QUEUE`; may be repeated", "q")
	queues.Required = true
	return []cli.Flag{queues, jobverb.ReasonFlag()}
}

// eachQueue pauses or resumes each queue named.
func (p *Verbs) eachQueue(c *cli.Context, set func(s *commands.Service, ctx context.Context, actor, queue,
	reason string) (bool, error)) error {
	names := c.StringSlice("queue")
	for _, name := range names {
		if err := commands.CheckQueue(name); err != nil {
			return err
		}
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	for _, name := range names {
		_, known, err := state.NamedQueue(c.Context, service.Store, name)
		if err != nil {
			return err
		}
		changed, err := set(service, c.Context, p.Actor, name, c.String("reason"))
		if err != nil {
			return err
		}
		q, _, err := state.NamedQueue(c.Context, service.Store, name)
		if err != nil {
			return err
		}
		near := ""
		if !known {
			err := service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
				near, err = find.NearQueue(c.Context, tx, name)
				return err
			})
			if err != nil {
				return err
			}
		}
		p.Message("%s", print.QueueSet(q, known, changed, near, p.Now().Location()))
		if p.JSON {
			if err := p.PrintJSON(print.NewQueueSetJSON(q, changed)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Verbs) Resume() cli.Verb {
	return cli.Verb{
		Name: "resume", Group: cli.GroupOperate, Usage: "hand out the jobs of a paused queue again",
		About: "A queue that is not paused stays so.",
		Flags: queueFlags("resume"),
		Examples: []cli.Example{
			{"jobledger resume -q mail --reason 'smtp is back'", "workers claim from mail again"},
		},
		Exits: []int{cli.ExitBusy},
		Run: func(c *cli.Context) error {
			return p.eachQueue(c, (*commands.Service).Resume)
		},
	}
}
