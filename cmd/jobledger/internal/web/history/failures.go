package history

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// queuesAtOnce is how many jobs are read at a time for their queues.
const queuesAtOnce = 500

// EachFailure calls fn for each attempt that failed or was taken back within s, with the queue of its job,
// its code and the first line of its detail.
func EachFailure(ctx context.Context, tx *ledger.Tx, s Span,
	fn func(e event.Event, queue, code, detail string)) error {
	if s.To.Pos == 0 {
		return nil
	}
	var events []event.Event
	flush := func() error {
		var ns []int64
		for _, e := range events {
			ns = append(ns, e.N)
		}
		slices.Sort(ns)
		jobs, err := projection.GetMany(ctx, tx, slices.Compact(ns))
		if err != nil {
			return err
		}
		for _, e := range events {
			switch b := e.Body.(type) {
			case *event.Failed:
				detail, _, _ := strings.Cut(b.ErrorDetail, "\n")
				fn(e, jobs[e.N].Queue, b.ErrorCode, detail)
			case *event.Reclaimed:
				fn(e, jobs[e.N].Queue, b.Reason, "")
			}
		}
		events = events[:0]
		return nil
	}
	f := ledger.Filter{Kinds: []event.Kind{event.KindFailed, event.KindReclaimed}, After: s.From.Pos,
		Until: s.To.Pos, Queue: s.Queue, Worker: s.Worker}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return err
		}
		if events = append(events, e); len(events) == queuesAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// FailureSteps is how many columns the small picture of a [FailureGroup] has.
const FailureSteps = 48

// maxGroups is how many groups of failures there are at most; the rest is in one more.
const maxGroups = 1000

// FailureGroup is the failures that look alike: of one queue, with one code, and a detail that differs in
// numbers, quoted parts and paths only.
type FailureGroup struct {
	Queue, Code string
	Detail      string // what is the same in all of them
	Example     string // of the last one
	Count       int
	Jobs        map[int64]bool
	First, Last time.Time
	LastPos     int64
	Workers     map[string]int
	Versions    map[string]int
	Steps       [FailureSteps]int
}

// Failures groups the failures of s, the largest group first.
func Failures(ctx context.Context, tx *ledger.Tx, s Span) (groups []*FailureGroup, err error) {
	byKey := make(map[[3]string]*FailureGroup)
	err = EachFailure(ctx, tx, s, func(e event.Event, queue, code, detail string) {
		key := [3]string{queue, code, fingerprint(detail)}
		g := byKey[key]
		if g == nil && len(byKey) >= maxGroups {
			key = [3]string{"", "other", ""}
			g = byKey[key]
		}
		if g == nil {
			g = &FailureGroup{Queue: key[0], Code: key[1], Detail: key[2], First: e.At, Jobs: make(map[int64]bool),
				Workers: make(map[string]int), Versions: make(map[string]int)}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.Count++
		g.Jobs[e.N] = true
		g.Last, g.LastPos, g.Example = e.At, e.Pos, detail
		if e.Worker.Name != "" {
			g.Workers[e.Worker.Name]++
		}
		g.Versions[e.Worker.Version]++
		g.Steps[min(FailureSteps-1, int(int64(FailureSteps)*s.millis(e.At)/max(1, s.Length().Milliseconds())))]++
	})
	slices.SortStableFunc(groups, func(a, b *FailureGroup) int { return b.Count - a.Count })
	return groups, err
}

// variable are the parts of a detail that differ between failures of one sort.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"[^"]*"|'[^']*'|(?:/[\w.@-]+)+|\b[0-9a-fA-F]{8,}\b|\b\d[\d.:,]*\b`)
})

// fingerprint is detail without the parts that vary.
func fingerprint(detail string) string {
	if len(detail) > 200 {
		detail = detail[:200]
	}
	return strings.ToValidUTF8(variable().ReplaceAllString(detail, "…"), "�")
}
