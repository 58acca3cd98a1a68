package main

import (
	"context"
	"fmt"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

func pauseVerb(p *program) cli.Verb {
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
	return []cli.Flag{queues, reasonFlag()}
}

// queueJSON is a queue after pause or resume.
type queueJSON struct {
	Queue   string  `json:"queue"`
	Paused  bool    `json:"paused"`
	Changed bool    `json:"changed"` // false: it was so already
	Since   *string `json:"since"`
	Actor   *string `json:"actor"`
	Reason  *string `json:"reason"`
}

// eachQueue pauses or resumes each queue named.
func (p *program) eachQueue(c *cli.Context, set func(s *commands.Service, ctx context.Context, actor, queue,
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
		known, _, err := p.queueNamed(c.Context, service, name)
		if err != nil {
			return err
		}
		changed, err := set(service, c.Context, p.Actor, name, c.String("reason"))
		if err != nil {
			return err
		}
		_, q, err := p.queueNamed(c.Context, service, name)
		if err != nil {
			return err
		}
		near := ""
		if !known {
			err := service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
				near, err = jobref.NearQueue(c.Context, tx, name)
				return err
			})
			if err != nil {
				return err
			}
		}
		p.tellQueue(q, known, changed, near)
		if p.JSON {
			j := queueJSON{q.Name, q.Paused, changed, render.TimeOrNull(q.Since), render.TextOrNull(q.Actor),
				render.TextOrNull(q.Reason)}
			if err := p.PrintJSON(j); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *program) tellQueue(q projection.Queue, known, changed bool, near string) {
	state := "not paused"
	if q.Paused {
		state = "paused"
	}
	text := fmt.Sprintf("queue %s is %s", q.Name, state)
	if !changed {
		text = fmt.Sprintf("queue %s is %s already", q.Name, state)
		if !q.Since.IsZero() {
			text += fmt.Sprintf(", since %s by %s", render.Time(q.Since.In(p.Now().Location())), q.Actor)
		}
		if q.Reason != "" {
			text += ": " + q.Reason
		}
	}
	if !known { // a slip of the finger would pause nothing
		text += "; no job was ever in it"
		if near != "" {
			text += ", did you mean " + near + "?"
		}
	}
	p.Message("%s", text)
}

// queueNamed reads the queue; known is false for a name that the ledger has never seen.
func (p *program) queueNamed(ctx context.Context, service *commands.Service, name string) (known bool,
	q projection.Queue, err error) {
	err = service.Store.Read(ctx, func(tx *ledger.Tx) error {
		n, err := tx.Name(ctx, name)
		if known = n != 0; err != nil {
			return err
		}
		q, err = projection.GetQueue(ctx, tx, name)
		return err
	})
	return known, q, err
}
