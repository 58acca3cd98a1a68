//go:build unix

package faultvfs_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest/faultvfs"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// This file compares the answers that clients got with what a ledger contains after a fault.

// fact identifies one event without its pos. An answer promises that the ledger contains its facts.
type fact string

func jobFact(id event.JobID, seq int64) fact { return fact(fmt.Sprintf("%s %d", id, seq)) }

func refusedFact(id event.JobID, command, token string) fact {
	return fact(fmt.Sprintf("%s refused %s %s", id, command, token))
}

func erasedFact(id event.JobID) fact { return fact(id + " erased") }

func queueFact(queue, reason string) fact { return fact("queue " + queue + " " + reason) }

func workerFact(kind event.Kind, boot string) fact { return fact(fmt.Sprint(kind, " ", boot)) }

func factOf(e event.Event) fact {
	switch b := e.Body.(type) {
	case *event.Refused:
		return refusedFact(e.Job, b.Command, e.Token)
	case *event.Erased:
		return erasedFact(e.Job)
	case *event.QueuePaused:
		return queueFact(b.Queue, b.Reason)
	case *event.QueueResumed:
		return queueFact(b.Queue, b.Reason)
	case *event.WorkerStarted, *event.WorkerStopped:
		return workerFact(e.Kind(), e.Worker.Boot)
	}
	return jobFact(e.Job, e.Seq)
}

// command is one command of a client.
type command struct {
	began, answered int // times of the disk: before it was sent, and after it was answered
	facts           []fact
	parts           bool // it may take more than one transaction
}

// client sends one command after another and keeps the answers.
type client struct {
	disk     *faultvfs.Disk
	actor    string
	commands []command
	open     bool // the last command has no answer yet
}

// ask sends a command and keeps the answer. After an error, the next call must send the same command again.
func (c *client) ask(parts bool, send func() ([]fact, error)) error {
	if !c.open {
		c.commands = append(c.commands, command{began: c.disk.Now(), parts: parts, answered: math.MaxInt})
		c.open = true
	}
	facts, err := send()
	if err == nil {
		command := &c.commands[len(c.commands)-1]
		command.answered, command.facts, c.open = c.disk.Now(), facts, false
	}
	return err
}

// answered returns how many commands were answered before a time of the disk.
func (c *client) answered(moment int) (n int) {
	for n < len(c.commands) && c.commands[n].answered <= moment {
		n++
	}
	return n
}

// promised returns the facts about one job that an answer without an error, or a refusal, promises.
func promised(j projection.Job, c commands.Command, err error) []fact {
	var refused *commands.RefusedError
	_, erases := c.(commands.Erase)
	switch {
	case errors.As(err, &refused) && refused.Command == "heartbeat" &&
		(errors.Is(err, commands.ErrConflict) || errors.Is(err, commands.ErrCancelled)):
		return nil // of an orderly owner, whose claim has ended meanwhile: it is not recorded
	case errors.As(err, &refused):
		return []fact{refusedFact(refused.Job, refused.Command, refused.Token)}
	case err != nil:
		return nil
	case erases:
		return []fact{jobFact(j.ID, j.Seq), erasedFact(j.ID)}
	}
	return []fact{jobFact(j.ID, j.Seq)}
}

// history is the content of a ledger without faults, and the client that asked for each event.
type history struct {
	lines   []string // the events in their export form
	actors  []string // the actor of each event
	pos     map[fact]int
	clients []*client
}

// newHistory reads the events of a store. Each event after the first old ones must have been promised to a
// client.
func newHistory(store *ledger.Store, clients []*client, old int) (*history, error) {
	h := &history{pos: make(map[fact]int), clients: clients}
	err := read(store, func(tx *ledger.Tx) error {
		return eachEvent(tx, func(e event.Event, line string) error {
			h.lines, h.actors = append(h.lines, line), append(h.actors, e.Actor)
			h.pos[factOf(e)] = len(h.lines)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if len(h.pos) != len(h.lines) {
		return nil, fmt.Errorf("%d events have %d names", len(h.lines), len(h.pos))
	}
	promised := make(map[fact]bool)
	for _, c := range clients {
		for _, command := range c.commands {
			for _, f := range command.facts {
				if h.pos[f] == 0 {
					return nil, fmt.Errorf("%s was promised %q, and the ledger has nothing of it", c.actor, f)
				}
				promised[f] = true
			}
		}
	}
	for f, pos := range h.pos {
		if pos > old && !promised[f] {
			return nil, fmt.Errorf("event %d was promised to no client: %s", pos, h.lines[pos-1])
		}
	}
	return h, nil
}

// answeredEarly returns h as if every command had been answered when it was sent.
func (h *history) answeredEarly() *history {
	early := *h
	early.clients = nil
	for _, c := range h.clients {
		c := &client{actor: c.actor, commands: slices.Clone(c.commands)}
		for i := range c.commands {
			c.commands[i].answered = c.commands[i].began
		}
		early.clients = append(early.clients, c)
	}
	return &early
}

// after checks a ledger that was cut off at a time of the disk. Its events must be a prefix of the history.
// Unless lossy, they must include everything that was acknowledged before the cut. Of the rest, they may
// include at most the one command that each client had in flight, completely or not at all. It returns how
// many events are left.
func (h *history) after(store *ledger.Store, moment int, lossy bool) (left int, err error) {
	left, err = h.beginning(store)
	if err != nil {
		return left, err
	}
	for _, c := range h.clients {
		if err := h.afterOf(c, left, moment, lossy); err != nil {
			return left, err
		}
	}
	return left, nil
}

// afterOf is after for the commands of one client.
func (h *history) afterOf(c *client, left, moment int, lossy bool) error {
	made := make(map[fact]bool)
	answered := c.answered(moment)
	for i, command := range c.commands {
		here, fresh := 0, 0
		for _, f := range command.facts {
			pos := h.pos[f]
			if pos > left && i < answered && !lossy {
				return fmt.Errorf("lost: the answer to command %d of %s promised %q, event %d, and the ledger ends at %d",
					i, c.actor, f, pos, left)
			}
			if made[f] || h.actors[pos-1] != c.actor {
				continue // an earlier command caused it
			}
			made[f] = true
			fresh++
			if pos <= left {
				here++
			}
		}
		if here > 0 && (i > answered || command.began >= moment) {
			return fmt.Errorf("command %d of %s had not been sent, and is in the ledger: %q", i, c.actor,
				command.facts)
		}
		if here > 0 && here < fresh && !command.parts {
			return fmt.Errorf("command %d of %s is there in part: %q", i, c.actor, command.facts)
		}
	}
	return nil
}

// beginning checks that the ledger is consistent and that its events are a prefix of the history.
func (h *history) beginning(store *ledger.Store) (left int, err error) {
	err = read(store, func(tx *ledger.Tx) error {
		if err := verify(tx); err != nil {
			return err
		}
		return eachEvent(tx, func(_ event.Event, line string) error {
			if left == len(h.lines) || line != h.lines[left] {
				return fmt.Errorf("event %d is not the one that was written: %s", left+1, line)
			}
			left++
			return nil
		})
	})
	return left, err
}

func read(store *ledger.Store, fn func(*ledger.Tx) error) error {
	return store.Read(context.Background(), fn)
}

// eachEvent calls fn with every event and its export form.
func eachEvent(tx *ledger.Tx, fn func(e event.Event, line string) error) error {
	for e, err := range tx.Events(context.Background(), ledger.Filter{}) {
		if err != nil {
			return err
		}
		line := event.Line{Event: e}
		if err := fn(e, string(line.AppendJSON(nil))); err != nil {
			return err
		}
	}
	return nil
}

// verify runs the checks of the verify command: the database is intact, and the tables equal the fold of the
// events.
func verify(tx *ledger.Tx) error {
	v, err := audit.Verify(context.Background(), tx, nil)
	if err == nil && len(v.Findings) > 0 {
		err = fmt.Errorf("verify: %+v", v.Findings[0])
	}
	return err
}

// reopened opens the ledger that a power cut has left, calls fn to check it, and closes it.
func reopened(dir string, files map[string][]byte, dsn string, fn func(*faultvfs.Disk, *ledger.Store) error) (
	*faultvfs.Disk, error) {
	disk, unmount, err := faultvfs.MountFiles(dir, files)
	if err != nil {
		return nil, err
	}
	defer unmount()
	store, err := ledger.Open(context.Background(), fmt.Sprintf(dsn, filepath.Join(dir, "jobs.db")))
	if err != nil {
		return disk, fmt.Errorf("open: %w", err)
	}
	err = fn(disk, store)
	return disk, errors.Join(err, store.Close())
}

// inParallel runs fns concurrently and returns the first error.
func inParallel(fns ...func() error) error {
	var group sync.WaitGroup
	errs := make([]error, len(fns))
	for i, fn := range fns {
		group.Go(func() { errs[i] = fn() })
	}
	group.Wait()
	return errors.Join(errs...)
}
