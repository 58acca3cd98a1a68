package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// How much a report takes in; the rest is in the other files.
const (
	reportRows    = 200         // of a table
	reportEntries = 2000        // of the timeline
	sameEntry     = time.Minute // what repeats within it is told once, with its number
	unusual       = 5           // failures of one kind in a row, below which the timeline is silent: some always fail
)

// facts are what a report is made of.
type facts struct {
	ledger   string
	within   export.Window
	events   int64
	activity projection.Activity
	entries  []*entry
	more     int64 // entries beyond reportEntries
	recent   map[string]*entry
	lost     map[ledger.Worker]*lostWorker
	order    []*lostWorker
	reclaims rows[reclaimed]
	refused  rows[ledger.Event]
	gaveUp   rows[gaveUp]
	failures map[string]*failures
	depth    *depth
	verified audit.Verified
}

// rows are the first ones of a table, and how many there were.
type rows[T any] struct {
	first []T
	count int64
}

func (r *rows[T]) add(row T) {
	if r.count++; len(r.first) < reportRows {
		r.first = append(r.first, row)
	}
}

// entry is a line of the timeline: something that happened once, or again and again.
type entry struct {
	first, last time.Time
	count       int64
	text        func(n int64) string
	byOperator  bool
	failures    bool
}

// lostWorker is one time that a process was silent until a job was taken back from it.
type lostWorker struct {
	worker        ledger.Worker
	jobs          int64
	lastHeartbeat time.Time
	leaseEnd      time.Time // the first one that passed
	detected      time.Time // when the first job was taken back
	latest        time.Time // when the last one was
	refused       int64     // writes that it tried afterwards
	back          time.Time // the first of them
}

type reclaimed struct {
	ledger.Event
	queue string
	*ledger.Reclaimed
}

type gaveUp struct {
	ledger.Event
	queue, code string
}

type failures struct {
	code        string
	count       int64
	jobs        map[int64]bool // up to reportRows
	first, last time.Time
	detail      string // of the last one that had any
}

// investigate walks the ledger up to the end of s and gathers what happened within it.
func (p *program) investigate(ctx context.Context, service *commands.Service, s export.Window) (*facts, error) {
	f := &facts{ledger: service.Store.Path(), within: s, recent: make(map[string]*entry), lost: make(map[ledger.Worker]*lostWorker), failures: make(map[string]*failures)}
	f.depth = newDepth(s.From, earlier(s.To, p.now()))
	err := export.EachEvent(ctx, service.Store, s.Until, func(e ledger.Event, queue string) error {
		f.depth.add(e, queue, e.Pos > s.After)
		if e.Pos > s.After {
			f.add(e, queue)
		}
		return nil
	})
	f.depth.end()
	f.recent = nil
	return f, err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// note puts something on the timeline, or counts it there if the same has happened just now.
func (f *facts) note(e ledger.Event, key string, text func(n int64) string) *entry {
	if same := f.recent[key]; same != nil && e.At.Sub(same.last) <= sameEntry {
		same.count++
		same.last = e.At
		return same
	}
	if len(f.entries) == reportEntries {
		f.more++
		return &entry{}
	}
	next := &entry{first: e.At, last: e.At, count: 1, text: text}
	f.entries = append(f.entries, next)
	f.recent[key] = next
	return next
}

// once is a text for what does not repeat.
func once(format string, args ...any) func(int64) string {
	return func(int64) string { return fmt.Sprintf(format, args...) }
}

func (f *facts) add(e ledger.Event, queue string) {
	f.events++
	key := func(parts ...string) string { return strings.Join(append(parts, e.Kind().String()), "\x00") }
	switch b := e.Body.(type) {
	case *ledger.Enqueued:
		f.activity.Enqueued++
	case *ledger.Claimed:
		f.activity.Claimed++
	case *ledger.Succeeded:
		f.activity.Succeeded++
	case *ledger.Failed:
		f.activity.Failed++
		f.fail(e, queue, b.ErrorCode, b.ErrorDetail)
		f.note(e, key(queue, b.ErrorCode), func(n int64) string {
			return fmt.Sprintf("%s in %s failed: %s", render.Count(n, "attempt"), quote(queue), quote(b.ErrorCode))
		}).failures = true
	case *ledger.Released:
		f.activity.Released++
	case *ledger.Reclaimed:
		f.activity.Reclaimed++
		f.reclaims.add(reclaimed{e, queue, b})
		f.lose(e, b)
		f.fail(e, queue, b.Reason, "")
		f.note(e, key(e.Worker.Boot, b.Reason), func(n int64) string {
			return fmt.Sprintf("%s taken back from %s on %s by %s: %s", render.Count(n, "job"), quote(e.Worker.Name), quote(e.Worker.Host), quote(e.Actor), quote(b.Reason))
		})
	case *ledger.Refused:
		f.activity.Refused++
		f.refused.add(e)
		if w := f.lost[e.Worker]; w != nil {
			if w.refused++; w.back.IsZero() {
				w.back = e.At
			}
		}
		f.note(e, key(e.Worker.Boot, b.Command), func(n int64) string {
			return fmt.Sprintf("%s (%s) of %s refused: %s", render.Count(n, "write"), quote(b.Command), quote(e.Actor), quote(b.Why))
		})
	case *ledger.Cancelled:
		f.activity.Cancelled++
		f.operator(e, key(e.Actor, b.Reason, queue), "cancelled %s in "+quote(queue), b.Reason)
	case *ledger.Retried:
		f.operator(e, key(e.Actor, b.Reason, queue), "retried %s in "+quote(queue), b.Reason)
	case *ledger.Rescheduled:
		f.operator(e, key(e.Actor, b.Reason, queue), "rescheduled %s in "+quote(queue), b.Reason)
	case *ledger.Erased:
		f.operator(e, key(e.Actor, b.Reason, queue), "erased the payloads and results of %s in "+quote(queue), b.Reason)
	case *ledger.QueuePaused:
		f.operator(e, key(b.Queue), "paused the queue "+quote(b.Queue), b.Reason)
	case *ledger.QueueResumed:
		f.operator(e, key(b.Queue), "resumed the queue "+quote(b.Queue), b.Reason)
	case *ledger.WorkerStarted:
		f.note(e, key(e.Worker.Boot), once("worker %s started: pid %d on %s, version %s, queues %s", quote(e.Worker.Name), e.Worker.PID,
			quote(e.Worker.Host), quote(render.OrNone(e.Worker.Version)), quote(strings.Join(b.Queues, ", "))))
	case *ledger.WorkerStopped:
		f.note(e, key(e.Worker.Boot), once("worker %s stopped: pid %d on %s", quote(e.Worker.Name), e.Worker.PID, quote(e.Worker.Host)))
	case *ledger.Rebuilt:
		f.operator(e, key(), fmt.Sprintf("rebuilt the tables: %d rows changed, %d added, %d removed", b.Changed, b.Missing, b.Extra), "")
	case *ledger.Restored:
		f.operator(e, key(), "restored the ledger from "+quote(b.From), "")
	case *ledger.Imported:
		f.operator(e, key(), fmt.Sprintf("imported %s from %s", render.Count(b.Events, "event"), quote(b.From)), "")
	}
}

// operator notes what somebody did, to a number of jobs where does has a verb for that.
func (f *facts) operator(e ledger.Event, key, does, reason string) {
	done := f.note(e, key, func(n int64) string {
		text := does
		if strings.Contains(does, "%s") {
			text = strings.Replace(does, "%s", render.Count(n, "job"), 1)
		}
		if reason != "" {
			text += ", reason: " + quote(reason)
		}
		return quote(e.Actor) + " " + text
	})
	done.byOperator = true
}

func (f *facts) fail(e ledger.Event, queue, code, detail string) {
	g := f.failures[code]
	if g == nil {
		g = &failures{code: code, first: e.At, jobs: make(map[int64]bool)}
		f.failures[code] = g
	}
	g.count++
	g.last = e.At
	if len(g.jobs) < reportRows {
		g.jobs[e.N] = true
	}
	if detail != "" {
		g.detail = detail
	}
	if e.To == ledger.FailedState {
		f.gaveUp.add(gaveUp{e, queue, code})
	}
}

func (f *facts) lose(e ledger.Event, b *ledger.Reclaimed) {
	w := f.lost[e.Worker]
	if w == nil || b.LastHeartbeat.After(w.latest) { // it was alive in between
		w = &lostWorker{worker: e.Worker, leaseEnd: b.LeaseUntil, detected: e.At}
		f.lost[e.Worker] = w
		f.order = append(f.order, w)
	}
	w.jobs++
	w.latest = e.At
	if b.LastHeartbeat.After(w.lastHeartbeat) {
		w.lastHeartbeat = b.LastHeartbeat
	}
	if b.LeaseUntil.Before(w.leaseEnd) {
		w.leaseEnd = b.LeaseUntil
	}
}
