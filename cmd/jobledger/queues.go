package main

import (
	"context"
	"math"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/projection"
)

// queuesVerb answers which queues are or were paused.
func queuesVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "queues", Group: cli.GroupSee, Usage: "show which queues are paused, by whom, since when and why",
		About: "Every queue that has or had jobs, or was ever paused; --paused shows only those that are paused. " +
			"SINCE and BY are of the last pause or resume. With --as-of it is how things were at that moment, " +
			"however long before it a queue was paused: 'events --kind queue_paused --from' lists only the " +
			"pauses that began later. 'status' counts the jobs of each queue.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "paused", Usage: "only queues that are paused"},
			cli.AsOfFlag(),
			cli.WideFlag(),
		},
		Renamed: map[string]string{"at": "as-of"},
		Examples: []cli.Example{
			{"jobledger queues --paused", "what is paused now"},
			{"jobledger queues --paused --as-of 02:15", "what was paused at a quarter past two"},
			{"jobledger queues --paused --json | jq -r .queue", "their names, for a script"},
		},
		Exits: []int{cli.ExitNothing},
		Run: func(c *cli.Context) error {
			return p.queues(c, c.Bool("paused"))
		},
	}
}

func (p *program) queues(c *cli.Context, onlyPaused bool) error {
	var found []projection.Queue
	var m cli.Past
	err := p.Read(c.Context, func(tx *ledger.Tx) (err error) {
		if m, err = p.PastFlag(c, tx); err == nil {
			found, err = queuesAt(c.Context, tx, m, onlyPaused)
		}
		return err
	})
	if err != nil {
		return err
	}
	then := p
	if m.Given {
		then = p.at(m.Moment)
	}
	switch {
	case len(found) == 0 && onlyPaused && m.Given:
		return cli.Exitf(cli.ExitNothing, "no queue was paused at %s (pos %d)", render.Time(p.Local(m.At)), m.Pos)
	case len(found) == 0 && onlyPaused:
		return cli.Exitf(cli.ExitNothing, "no queue is paused")
	case len(found) == 0:
		return cli.Exitf(cli.ExitNothing, "no jobs yet")
	case !p.JSON:
		return then.printQueues(found, c.Bool("wide"))
	}
	for _, q := range found {
		var line any = toQueueStateJSON(q)
		if m.Given {
			line = queueThenJSON{toQueueStateJSON(q), render.TimeOrNull(m.At), m.Pos}
		}
		if err := p.PrintJSON(line); err != nil {
			return err
		}
	}
	return nil
}

// queuesAt returns the queues as they are now or as they were at m, by name.
func queuesAt(ctx context.Context, tx *ledger.Tx, m cli.Past, onlyPaused bool) (
	found []projection.Queue, err error) {
	pos := int64(math.MaxInt64)
	if m.Given {
		pos = m.Pos
		found, err = projection.QueuesAsOf(ctx, tx, m.Moment)
	} else {
		found, err = projection.Queues(ctx, tx)
	}
	if err != nil {
		return nil, err
	}
	if onlyPaused {
		return slices.DeleteFunc(found, func(q projection.Queue) bool { return !q.Paused }), nil
	}
	names, err := projection.QueuesWithJobs(ctx, tx, pos)
	for _, name := range names {
		if !slices.ContainsFunc(found, func(q projection.Queue) bool { return q.Name == name }) {
			found = append(found, projection.Queue{Name: name})
		}
	}
	slices.SortFunc(found, func(a, b projection.Queue) int { return strings.Compare(a.Name, b.Name) })
	return found, err
}

func (p *program) printQueues(queues []projection.Queue, wide bool) error {
	t := &cli.Table{Wide: wide, Columns: []cli.Column{{Title: "QUEUE", Least: 8}, {Title: "STATE"},
		{Title: "SINCE", Drop: 1}, {Title: "FOR", Right: true}, {Title: "BY", Drop: 2, Least: 8},
		{Title: "REASON", Least: 8}}}
	for _, q := range queues {
		state := "open"
		if q.Paused {
			state = "paused"
		}
		if q.Since.IsZero() {
			t.Add(q.Name, state, "-", "-", "", "")
			continue
		}
		held := render.Roughly(max(0, p.Now().Sub(q.Since)))
		t.Add(q.Name, state, p.FormatMillis(q.Since), held, q.Actor, q.Reason)
	}
	return p.PrintTable(t)
}

// queueStateJSON is a queue for programs.
type queueStateJSON struct {
	Queue  string  `json:"queue"`
	Paused bool    `json:"paused"`
	Since  *string `json:"since"`
	Actor  *string `json:"actor"`
	Reason *string `json:"reason"`
}

func toQueueStateJSON(q projection.Queue) queueStateJSON {
	return queueStateJSON{Queue: q.Name, Paused: q.Paused, Since: render.TimeOrNull(q.Since),
		Actor: render.TextOrNull(q.Actor), Reason: render.TextOrNull(q.Reason)}
}

// queueThenJSON is a queue as it was.
type queueThenJSON struct {
	queueStateJSON
	AsOf *string `json:"as_of"`
	Pos  int64   `json:"pos"`
}
