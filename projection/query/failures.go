package query

import (
	"cmp"
	"context"
	"database/sql/driver"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// FailuresBy is what the failures of one group have in common.
type FailuresBy int

// What failures are grouped by.
const (
	ByCode   FailuresBy = iota // the error code, or the reason
	ByQueue                    // the queue too
	ByDetail                   // the queue, and the detail but for numbers, quoted parts and paths
)

// failed are the outcomes that [Failures] are about unless it is asked for others.
var failed = []event.Kind{event.KindFailed, event.KindReclaimed}

// Failures asks which attempts failed, or were taken back from their worker, within a window.
type Failures struct {
	Span
	By       FailuresBy
	Outcomes []event.Kind // failed, reclaimed or released; none: failed and reclaimed
	Limit    int          // at most so many groups; 0: no limit
}

// FailureGroup are failures that have something in common.
type FailureGroup struct {
	Queue       string // "": of several; see [FailuresBy]
	Code        string // the error code of failed attempts, the reason of those taken back or released
	Detail      string // the first line of their details, with … for what differs; see [FailuresBy]
	Example     string // the first line of the last detail that there is
	Exit        *int   // of the last one; nil: a signal ended the command, or none ran
	Attempts    int64
	Jobs        map[int64]bool // their numbers
	First, Last time.Time
	LastPos     int64
	Workers     map[string]int // attempts by the name of the worker
	Versions    map[string]int // attempts by its version
	Each        []Failed       // the attempts, in the order in which they ended
}

// Failed is one attempt of a [FailureGroup].
type Failed struct {
	Pos    int64 // of the event that ended it
	At     time.Time
	Detail string // the first line
}

// FailureGroups are the answer to [Failures].
type FailureGroups struct {
	List     []*FailureGroup // the one with the most attempts first, then by code, then the one that came first
	More     int             // so many groups are left out
	Attempts int64           // of all groups
}

// Read returns the groups, or an [*InputError] for another outcome. It reads the failures of the window, and
// of each job its first event.
func (q Failures) Read(ctx context.Context, tx *ledger.Tx) (all FailureGroups, err error) {
	for _, k := range q.Outcomes {
		if k != event.KindFailed && k != event.KindReclaimed && k != event.KindReleased {
			return all, badInput("outcome", "failures end as failed, reclaimed or released")
		}
	}
	byKey := make(map[[3]string]*FailureGroup)
	err = q.Each(ctx, tx, func(f Failure) {
		key := [3]string{"", f.Code, ""}
		if q.By != ByCode {
			key[0] = f.Queue
		}
		if q.By == ByDetail {
			key[2] = Fingerprint(f.Detail)
		}
		g := byKey[key]
		if g == nil {
			g = &FailureGroup{Queue: key[0], Code: key[1], Detail: key[2], First: f.At, Jobs: make(map[int64]bool),
				Workers: make(map[string]int), Versions: make(map[string]int)}
			byKey[key] = g
		}
		all.Attempts++
		g.Attempts++
		g.Jobs[f.N] = true
		g.Last, g.LastPos, g.Example, g.Exit = f.At, f.Pos, cmp.Or(f.Detail, g.Example), f.Exit
		g.Each = append(g.Each, f.Failed)
		if f.Worker.Name != "" {
			g.Workers[f.Worker.Name]++
		}
		g.Versions[f.Worker.Version]++
	})
	all.List = slices.SortedFunc(maps.Values(byKey), func(a, b *FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Attempts, a.Attempts), strings.Compare(a.Code, b.Code),
			cmp.Compare(a.Each[0].Pos, b.Each[0].Pos))
	})
	if q.Limit > 0 && len(all.List) > q.Limit {
		all.More = len(all.List) - q.Limit
		all.List = all.List[:q.Limit]
	}
	return all, err
}

// Select returns the question for exactly the attempts of g, which q found.
func (q Failures) Select(g *FailureGroup) Attempts {
	a := Attempts{Span: q.Span, Outcomes: q.outcomes(), Code: &g.Code}
	a.At = q.To // what ended later has not ended
	if q.By != ByCode {
		a.Queue = g.Queue
	}
	if q.By == ByDetail {
		a.Detail = &g.Detail
	}
	return a
}

func (q Failures) outcomes() []event.Kind {
	if len(q.Outcomes) == 0 {
		return failed
	}
	return q.Outcomes
}

// Failure is an attempt that ended badly.
type Failure struct {
	Failed
	N       int64 // the job's number
	Job     event.JobID
	Attempt int
	Queue   string
	Worker  event.Worker // that had the job
	Code    string       // see [FailureGroup]
	Exit    *int         // of its command; nil: there is none
	Kind    event.Kind   // of the event that ended it
	GivenUp bool         // the job is not tried again
}

const failures = `SELECT e.pos, e.at, e.job, q.ulid, e.attempt, q.data ->> 'queue', e.worker,
    coalesce(e.data ->> 'error_code', e.data ->> 'reason', ''), e.data ->> 'error_detail', e.kind, e.to_state,
    CAST(e.data ->> 'exit_code' AS BIGINT)
FROM events e CROSS JOIN events q WHERE q.pos = e.job AND e.pos > ? AND e.pos <= ? AND e.kind IN (`

// Each calls fn with each failure, in the order in which they happened. By and Limit do not matter.
func (q Failures) Each(ctx context.Context, tx *ledger.Tx, fn func(Failure)) (err error) {
	kinds := q.outcomes()
	text, args := failures+table.Placeholders(len(kinds))+`)`, []any{q.From.Pos, q.To.Pos}
	for _, k := range kinds {
		args = append(args, int64(k))
	}
	if q.Queue != "" {
		text, args = text+` AND q.data ->> 'queue' = ?`, append(args, q.Queue)
	}
	if q.Worker != "" {
		text += ` AND e.worker IN (SELECT n FROM workers WHERE worker = ? OR boot = ?)`
		args = append(args, q.Worker, q.Worker)
	}
	failed := tx.Each(ctx, func(row []driver.Value) bool {
		number := func(i int) int64 { n, _ := row[i].(int64); return n }
		detail, _, _ := strings.Cut(ledger.Text(row[8]), "\n")
		f := Failure{Failed: Failed{number(0), event.FromMicros(number(1)), detail}, N: number(2),
			Job: event.JobID(ledger.Text(row[3])), Attempt: int(number(4)), Queue: ledger.Text(row[5]),
			Code: ledger.Text(row[7]), Kind: event.Kind(number(9)),
			GivenUp: event.State(number(10)) == event.FailedState}
		if row[11] != nil {
			exit := int(number(11))
			f.Exit = &exit
		}
		if f.Worker, err = tx.WorkerOf(ctx, number(6)); err == nil {
			fn(f)
		}
		return err == nil
	}, text+` ORDER BY e.pos`, args...)
	return cmp.Or(failed, err)
}

// variable are the parts of a detail that differ between failures of one sort.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"[^"]*"|'[^']*'|(?:/[\w.@-]+)+|\b[0-9a-fA-F]{8,}\b|\b\d[\d.:,]*\b`)
})

// Fingerprint is the first line of an error detail without the parts that differ between failures of one
// sort: what is quoted, paths and numbers. It is of its first 200 bytes.
func Fingerprint(detail string) string {
	detail, _, _ = strings.Cut(detail, "\n")
	if len(detail) > 200 {
		detail = detail[:200]
	}
	return strings.ToValidUTF8(variable().ReplaceAllString(detail, "…"), "�")
}
