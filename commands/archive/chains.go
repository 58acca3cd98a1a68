package archive

import (
	"fmt"

	"jobledger/ledger/event"
	"jobledger/ledger/segment"
)

// chains are the last transitions of jobs.
type chains map[event.JobID]link

// link is a transition of a job: its seq, and the state that it led to.
type link struct {
	seq int64
	to  event.State
}

// add adds the next event.
func (c chains) add(e *event.Event) error {
	if !e.Kind().HasSeq() {
		return nil
	}
	last := c[e.Job]
	if e.Seq != last.seq+1 || e.From != last.to {
		return fmt.Errorf("%w: event %d has the seq %d from %q in the job %s, after the seq %d to %q",
			segment.ErrDamaged, e.Pos, e.Seq, e.From, e.Job, last.seq, last.to)
	}
	c[e.Job] = link{e.Seq, e.To}
	return nil
}

// continues compares the carried-in chains with those of the file before.
func (c chains) continues(before chains) error {
	for job, was := range before {
		is, ok := c[job]
		if ok && is != was || !ok && !was.to.Final() {
			return fmt.Errorf("%w: the job %s was %s at seq %d when the segment before ended, and is carried in as "+
				"%q at seq %d", segment.ErrDamaged, job, was.to, was.seq, is.to, is.seq)
		}
	}
	return nil
}
