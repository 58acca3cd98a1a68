package export

import (
	"bufio"
	"context"
	"io"

	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// otlpSpans is how many spans a line has at most.
const otlpSpans = 256

// OTLP writes what happened within w as OpenTelemetry spans: a line for each 256 of them, which is an
// ExportTraceServiceRequest in the JSON encoding of OTLP. They are, in the order in which they ended:
//
//   - a job that was enqueued: the root of the job's trace, without a duration
//   - a claim that ended: a child of that, from the claim to its end
//   - a write that was refused: likewise, without a duration, with a link to its claim
//
// The spans of windows that adjoin are those of the whole, each once; so a claim that is live at the end of
// w is none of w. All ids are derived from the events: the same history has the same spans.
//
// A job's trace has the id of the job, as a number. One with the tag traceparent is of that trace, and each
// of its spans has a link to the span that the tag names: it may not have been sampled, so it is not a
// parent.
func OTLP(ctx context.Context, store *ledger.Store, w Window, out io.Writer) error {
	t := &spanWriter{out: bufio.NewWriterSize(out, 64<<10), jobs: make(map[int64]spanJob)}
	t.find = func(n int64) (j spanJob, err error) {
		err = store.Read(ctx, func(tx *ledger.Tx) error {
			e, found, err := tx.OneEvent(ctx, ledger.Filter{Job: n, Kinds: []event.Kind{event.KindEnqueued}})
			if found {
				j = spanJobOf(e)
			}
			return err
		})
		return j, err
	}
	seed := func(e event.Event, queue string) error {
		t.claims.Add(e, queue)
		t.know(e)
		return nil
	}
	if err := EachEvent(ctx, store, w, seed, t.add); err != nil {
		return err
	}
	t.flush()
	return t.out.Flush()
}

// spanWriter writes spans in one pass over the ledger.
type spanWriter struct {
	out    *bufio.Writer // the first error stays there, for Flush
	claims follow.Claims
	jobs   map[int64]spanJob // those that have not ended
	find   func(n int64) (spanJob, error)

	groups []*spanGroup // of the next line, by their first span
	spans  int          // in groups
}

// spanJob has the fields that the spans of a job share. The zero value stands for an unknown job.
type spanJob struct {
	queue, key  string
	traceparent string // "": it has none that can be used
}

// spanGroup are spans of one origin.
type spanGroup struct {
	queue  string
	worker event.Worker // zero: of none
	spans  []span
}

// spanJobOf returns the job that e, an enqueued event, began.
func spanJobOf(e event.Event) spanJob {
	b := e.Body.(*event.Enqueued)
	j := spanJob{queue: b.Queue, key: b.Key}
	if text := b.Tags[worker.TraceTag]; worker.IsTraceparent(text) && text[:2] != "ff" &&
		text[3:35] != noTrace && text[36:52] != noSpan {
		j.traceparent = text
	}
	return j
}

// know keeps the job that e began, until it ends.
func (t *spanWriter) know(e event.Event) {
	if e.Kind() == event.KindEnqueued {
		t.jobs[e.N] = spanJobOf(e)
	}
}

// job returns the job that e concerns.
func (t *spanWriter) job(e event.Event) (spanJob, error) {
	if j, ok := t.jobs[e.N]; ok {
		return j, nil
	}
	return t.find(e.N) // it had ended, and was retried, or a write for it is refused
}

// add writes the span that ends with e, if any does.
func (t *spanWriter) add(e event.Event, queue string) error {
	if e.N == 0 {
		return nil
	}
	t.know(e)
	claim := t.claims.Add(e, queue)
	refused, _ := e.Body.(*event.Refused)
	if e.Kind() == event.KindEnqueued || claim != nil && claim.End != nil || refused != nil {
		j, err := t.job(e)
		switch {
		case err != nil:
			return err
		case refused != nil:
			t.write(queue, e.Worker, refusedSpan(e, j, refused))
		case claim != nil:
			t.write(queue, claim.Worker, claimSpan(claim, j))
		default:
			t.write(queue, event.Worker{}, enqueuedSpan(e, j))
		}
	}
	if e.To.Final() {
		delete(t.jobs, e.N)
	}
	return nil
}

// write adds a span to the next line.
func (t *spanWriter) write(queue string, w event.Worker, s span) {
	var to *spanGroup
	for _, g := range t.groups {
		if g.queue == queue && g.worker == w {
			to = g
		}
	}
	if to == nil {
		to = &spanGroup{queue: queue, worker: w}
		t.groups = append(t.groups, to)
	}
	to.spans = append(to.spans, s)
	if t.spans++; t.spans == otlpSpans {
		t.flush()
	}
}

// flush writes the line, if it has spans.
func (t *spanWriter) flush() {
	if t.spans > 0 {
		_, _ = t.out.Write(spanLine(t.groups))
		_ = t.out.WriteByte('\n')
	}
	t.groups, t.spans = nil, 0
}
