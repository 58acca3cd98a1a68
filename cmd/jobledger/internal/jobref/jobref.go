// Package jobref reads how a user names a job, and finds it: by its id, the beginning or the end of that, by
// its key, or as the newest of a queue. Every verb that takes a job uses it.
//
// The files, in reading order: jobref.go reads the line, find.go asks the ledger; unused.go finds queues
// that may be misspelt.
package jobref

import (
	"fmt"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/projection"
)

// Forms is a hint at how a job may be named.
const Forms = "a job is its id, the beginning of it, its end as in …Q7ZK, --key KEY -q QUEUE, " +
	"or -q QUEUE --last"

// about is the paragraph in the help of every verb that takes a job.
const about = "\nA JOB is named by its id, by the beginning of it, or by its end as in …Q7ZK (or " +
	"...Q7ZK); in place of JOB, --key and --queue name it, or --queue and --last: the newest of that " +
	"queue. Without --queue a --key must be in one queue only."

// Ref names a job. Exactly one of ID, Key and Last is set.
type Ref struct {
	ID    string // as it was typed
	Key   string // in Queue; "" as Queue: in any, if it is in one only
	Last  bool   // the newest of Queue
	Queue string

	until int64 // with Last: only jobs up to this number; 0: no limit
}

// String returns r as an error shows it.
func (r Ref) String() string {
	switch {
	case r.Last && r.until > 0:
		return fmt.Sprintf("queue %s had none yet at pos %d", r.Queue, r.until)
	case r.Last:
		return "queue " + r.Queue + " has none"
	case r.Key != "" && r.Queue != "":
		return fmt.Sprintf("none in queue %s has the key %q", r.Queue, r.Key)
	case r.Key != "":
		return fmt.Sprintf("none has the key %q", r.Key)
	}
	return r.ID
}

// AsOf is r where the newest job of a queue is the newest at m.
func (r Ref) AsOf(m projection.Moment) Ref {
	r.until = m.Pos
	return r
}

// Verb returns v, whose arguments are jobs, with the flags that may take their place and what the help says
// of them.
func Verb(v cli.Verb) cli.Verb {
	v.Flags = append(v.Flags[:len(v.Flags):len(v.Flags)],
		&cli.StringFlag{Name: "key", Usage: "in place of JOB: the job with this `KEY`"},
		&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE` of --key or --last"},
		&cli.BoolFlag{Name: "last", Usage: "in place of JOB: the newest job of --queue", DisableDefaultText: true})
	v.InPlace, v.InPlaceHint = []string{"key", "queue", "last"}, Forms
	v.About = strings.TrimPrefix(v.About+about, "\n")
	return v
}

// FromLine returns the jobs that the line names, at least one unless the verb takes lines without any.
func FromLine(c *cli.Context) (refs []Ref, err error) {
	key, queue, last := c.String("key"), c.String("queue"), c.Bool("last")
	switch {
	case key != "" && last:
		err = cli.Usagef("--key and --last exclude each other")
	case last && queue == "":
		err = cli.Usagef("--last needs a queue: -q QUEUE")
	case (key != "" || last) && c.Args().Present():
		err = cli.Usagef("%q and --%s exclude each other: both name a job", c.Args().First(),
			map[bool]string{true: "last", false: "key"}[last])
	case key != "" || last:
		return []Ref{{Key: key, Queue: queue, Last: last}}, nil
	case queue != "":
		err = cli.Usagef("--queue alone names no job: give --key KEY or --last")
	}
	if err != nil {
		return nil, cli.WithHint(err, "%s", Forms)
	}
	for _, id := range c.Args().Slice() {
		refs = append(refs, Ref{ID: id})
	}
	return refs, nil
}

// OneFromLine is [FromLine] for a verb that takes one job; ok is false where the line names none.
func OneFromLine(c *cli.Context) (r Ref, ok bool, err error) {
	refs, err := FromLine(c)
	if err != nil || len(refs) == 0 {
		return r, false, err
	}
	return refs[0], true, nil
}
