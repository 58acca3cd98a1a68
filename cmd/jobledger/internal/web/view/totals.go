package view

import (
	"context"
	"slices"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// Limits of [Totals].
const (
	TotalsPage = 100_000 // events that one call reads at most
	maxCodes   = 50      // codes of failures of one queue; the rest counts as OtherCodes
	maxOffered = 10_000  // jobs with a refused result and no accepted one
)

// OtherCodes is the name under which error codes without a count of their own are counted.
const OtherCodes = "other"

// Buckets are the upper ends of the buckets of a [Histogram], in seconds: 5 ms, doubled up to 5.8 hours.
var Buckets = func() (ends [23]float64) {
	for i := range ends {
		ends[i] = 0.005 * float64(int64(1)<<i)
	}
	return ends
}()

// Histogram counts durations. The last bucket has those that are longer than all of Buckets.
type Histogram struct {
	Counts [len(Buckets) + 1]int64
	Sum    float64 // seconds

	Exemplars [len(Buckets) + 1]Exemplar // of Waits and Runs
}

// add counts d, and returns its bucket and its seconds.
func (h *Histogram) add(d time.Duration) (bucket int, s float64) {
	s = max(0, d.Seconds())
	bucket, _ = slices.BinarySearch(Buckets[:], s)
	h.Counts[bucket]++
	h.Sum += s
	return bucket, s
}

// addOf is add, and the job of e is the exemplar of the bucket from now on.
func (h *Histogram) addOf(d time.Duration, e event.Event) {
	bucket, s := h.add(d)
	h.Exemplars[bucket] = Exemplar{Job: e.Job, N: e.N, Value: s, At: e.At}
}

// QueueTotals are what happened in one queue since the first event. Waits are from when a job was ready to
// its claim, Runs from a claim to its end, and Gaps between two signs of life of one claim.
type QueueTotals struct {
	Kinds    map[event.Kind]int64 // events
	Outcomes map[event.Kind]int64 // claims, by the event that ended them
	Codes    map[string]int64     // failed and reclaimed claims
	Refused  map[string]int64     // by the command
	Doubles  int64                // results that were refused and differ from the accepted one
	Waits    Histogram
	Gaps     Histogram
	Runs     map[event.Kind]*Histogram // by outcome
}

// Totals count what happened, event by event, for counters that neither a restart nor a second server
// changes. It reads each event once for all who ask, and holds the jobs that have not ended. It is safe for
// concurrent use; the zero value is ready.
type Totals struct {
	mu      sync.Mutex
	pos     int64
	end     await.SeenEnd // of what was read
	queues  map[string]*QueueTotals
	of      follow.QueuesOf
	claims  follow.Claims
	signs   map[int64]time.Time       // the last sign of life of a live claim, by job
	ready   map[int64]follow.Ready    // of the jobs that are queued or blocked
	offered map[int64][]event.Refused // results that came too early to compare them
}

// Refresh reads what was recorded since the last call, up to [TotalsPage] events. whole reports whether that
// was all, so that fn sees the totals at the end of tx's snapshot: it is called then, and keeps nothing.
func (t *Totals) Refresh(ctx context.Context, tx *ledger.Tx, fn func(queues map[string]*QueueTotals)) (
	pos int64, whole bool, err error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return 0, false, err
	}
	return t.refresh(ctx, tx, tail, fn)
}

// refresh is Refresh up to tail.
func (t *Totals) refresh(ctx context.Context, tx *ledger.Tx, tail int64,
	fn func(queues map[string]*QueueTotals)) (pos int64, whole bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	holds, err := t.end.Holds(ctx, tx, tail)
	if err != nil {
		return t.pos, false, err
	}
	if t.queues == nil || tail < t.pos || !holds { // at the beginning, or another ledger took its place
		t.end = await.SeenEnd{}
		t.pos, t.queues, t.claims = 0, make(map[string]*QueueTotals), follow.Claims{}
		t.signs, t.ready = make(map[int64]time.Time), make(map[int64]follow.Ready)
		t.of, t.offered = follow.QueuesOf{}, make(map[int64][]event.Refused)
	}
	t.of.Find = func(n int64) (string, error) { return follow.QueueAt(ctx, tx, n) }
	read := 0
	if t.pos < tail {
		for e, err := range tx.Events(ctx, ledger.Filter{After: t.pos, Until: tail, Limit: TotalsPage}) {
			if err != nil {
				return t.pos, false, err
			}
			if err := t.add(ctx, tx, e); err != nil {
				return t.pos, false, err
			}
			read++
			t.pos = e.Pos
		}
		if read < TotalsPage {
			t.pos = tail
		}
	}
	if err := t.end.Move(ctx, tx, t.pos); err != nil {
		return t.pos, false, err
	}
	if whole = t.pos == tail; whole {
		fn(t.queues)
	}
	return t.pos, whole, nil
}

func (t *Totals) queue(name string) *QueueTotals {
	q := t.queues[name]
	if q == nil {
		q = &QueueTotals{Kinds: make(map[event.Kind]int64), Outcomes: make(map[event.Kind]int64),
			Codes: make(map[string]int64), Refused: make(map[string]int64), Runs: make(map[event.Kind]*Histogram)}
		t.queues[name] = q
	}
	return q
}

// add counts e. It fails before it has changed anything but the queue of the job, so that e can be added
// again.
func (t *Totals) add(ctx context.Context, tx *ledger.Tx, e event.Event) error {
	name, err := t.of.Add(e)
	if err != nil {
		return err
	}
	refused, isRefused := e.Body.(*event.Refused)
	accepted, hasAccepted := (*event.Succeeded)(nil), false
	if isRefused && refused.Command == "succeed" {
		if accepted, hasAccepted, err = acceptedBefore(ctx, tx, e); err != nil {
			return err
		}
	}
	q := t.queue(name)
	q.Kinds[e.Kind()]++
	if e.N == 0 {
		return nil
	}
	switch b := e.Body.(type) {
	case *event.Refused:
		q.Refused[b.Command]++
		switch {
		case b.Command != "succeed":
		case hasAccepted && differs(b, accepted):
			q.Doubles++
		case !hasAccepted && len(t.offered) < maxOffered:
			t.offered[e.N] = append(t.offered[e.N], *b)
		}
		return nil
	case *event.Succeeded:
		for _, r := range t.offered[e.N] {
			if differs(&r, b) {
				q.Doubles++
			}
		}
		delete(t.offered, e.N)
	}
	t.addClaim(q, e, name)
	t.addReady(q, e)
	return nil
}

// acceptedBefore is the result of e's job that was accepted last before e.
func acceptedBefore(ctx context.Context, tx *ledger.Tx, e event.Event) (b *event.Succeeded, found bool,
	err error) {
	f := ledger.Filter{Job: e.N, Kinds: []event.Kind{event.KindSucceeded}, Until: e.Pos, Last: true}
	x, found, err := tx.OneEvent(ctx, f)
	if found {
		b = x.Body.(*event.Succeeded)
	}
	return b, found, err
}

func differs(r *event.Refused, b *event.Succeeded) bool {
	return r.OfferedSHA256 != b.ResultSHA256 || r.OfferedBytes != b.ResultBytes
}

// addClaim counts the gap or the end of a claim.
func (t *Totals) addClaim(q *QueueTotals, e event.Event, name string) {
	claim := t.claims.Add(e, name)
	if claim == nil {
		return
	}
	switch e.Kind() {
	case event.KindClaimed:
		t.signs[e.N] = e.At
		return
	case event.KindHeartbeat:
		q.Gaps.add(e.At.Sub(t.signs[e.N]))
		t.signs[e.N] = e.At
	case event.KindTakenOver:
		t.signs[e.N] = e.At
	}
	if claim.End == nil {
		return
	}
	delete(t.signs, e.N)
	q.Outcomes[e.Kind()]++
	if q.Runs[e.Kind()] == nil {
		q.Runs[e.Kind()] = new(Histogram)
	}
	q.Runs[e.Kind()].addOf(e.At.Sub(claim.ClaimedAt), e)
	code := ""
	switch b := e.Body.(type) {
	case *event.Failed:
		code = b.ErrorCode
	case *event.Reclaimed:
		code = b.Reason
	default:
		return
	}
	if _, known := q.Codes[code]; !known && len(q.Codes) >= maxCodes {
		code = OtherCodes
	}
	q.Codes[code]++
}

// addReady follows when the job is ready, and counts how long it was when it is claimed.
func (t *Totals) addReady(q *QueueTotals, e event.Event) {
	if e.Seq == 0 {
		return
	}
	ready, at := t.ready[e.N], event.Micros(e.At)
	if since := ready.At(); e.Kind() == event.KindClaimed && since > 0 {
		q.Waits.addOf(time.Duration(at-since)*time.Microsecond, e)
	}
	ready.Add(e.From, e.To, at, follow.DueOf(e))
	if e.To.Final() || e.To.Held() {
		delete(t.ready, e.N)
		return
	}
	t.ready[e.N] = ready
}
