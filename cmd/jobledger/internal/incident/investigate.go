package incident

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// sameEntry is how long after an event another one of the same sort still joins its entry.
const sameEntry = time.Minute

// Investigate gathers what happened within w, and verifies the events of w and the jobs that they concern. It
// costs these and the jobs that were open when w began, which the depth of the queues begins with. now ends
// the depth of a window that reaches into the future.
func Investigate(ctx context.Context, store *ledger.Store, w export.Window, now time.Time) (*Report, error) {
	end := w.To
	if now.Before(end) {
		end = now
	}
	in := investigation{
		Report: &Report{Ledger: store.LedgerPath(), Window: w}, ctx: ctx, recent: make(map[string]*Entry),
	}
	err := store.Read(ctx, func(tx *ledger.Tx) error {
		in.tx = tx
		for _, ask := range []func(time.Time) error{in.ask, in.askWorkers, in.askEvents} {
			if err := ask(end); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortStableFunc(in.Timeline, func(a, b *Entry) int { return a.First.Compare(b.First) })
	if n := len(in.Timeline); n > maxEntries {
		in.Timeline, in.Omitted = in.Timeline[:maxEntries], n-maxEntries
	}
	return in.Report, err
}

// investigation gathers a report.
type investigation struct {
	*Report
	ctx    context.Context
	tx     *ledger.Tx
	span   query.Span
	recent map[string]*Entry // the latest of each key
}

// ask asks about jobs, failures and operators.
func (in *investigation) ask(end time.Time) (err error) {
	ctx, tx, s := in.ctx, in.tx, &in.span
	if s.From, err = projection.AtPos(ctx, tx, in.Window.After); err != nil {
		return err
	}
	if s.To, err = projection.AtPos(ctx, tx, in.Window.Until); err != nil {
		return err
	}
	counts, err := query.Counts{Span: *s}.Read(ctx, tx)
	for kind, n := range counts {
		in.Events += n
		in.Activity.Count(kind, n)
	}
	if err != nil {
		return err
	}
	if in.Depth, err = readDepth(ctx, tx, in.Window, end); err != nil {
		return err
	}
	in.Paused, err = query.Queues{At: &s.From, Paused: true}.Read(ctx, tx)
	if err != nil {
		return err
	}
	in.Failures, err = query.Failures{Span: *s, By: query.ByCause}.Read(ctx, tx)
	if err != nil {
		return err
	}
	err = query.Failures{Span: *s}.Each(ctx, tx, func(f query.Failure) {
		if f.GivenUp {
			in.GivenUp = append(in.GivenUp, f)
		}
		if f.Kind == event.KindFailed {
			e := in.note(f.At, "failed", f.Queue, f.Code)
			e.Failures = true
			e.Text = fmt.Sprintf("%s in %s failed: %s", words.Count(int64(e.Count), "attempt"), quote(f.Queue),
				quote(f.Code))
		}
	})
	if err != nil {
		return err
	}
	acts, err := query.Acts{Span: *s, Limit: maxEntries, ByQueue: true}.Read(ctx, tx)
	for _, a := range acts.List {
		text := eventText(a.Event)
		if a.N != 0 {
			text = fmt.Sprintf("%s %s in %s", quote(a.Actor), print.ActWords(a), quote(a.Queue))
			if a.Reason != "" {
				text += ", reason: " + quote(a.Reason)
			}
		}
		in.Timeline = append(in.Timeline, &Entry{First: a.Begin, Last: a.At, Count: a.Count, Text: text,
			ByOperator: true})
	}
	in.Omitted = acts.More
	if err == nil {
		in.Verified, err = audit.VerifyWindow(ctx, tx, in.Window.After, in.Window.Until, nil)
	}
	return err
}

// askWorkers asks which workers lost jobs, and which fell silent, also without an event of theirs.
func (in *investigation) askWorkers(end time.Time) (err error) {
	if in.Taken, err = (query.Taken{Span: in.span}).Read(in.ctx, in.tx); err != nil {
		return err
	}
	for _, t := range in.Taken {
		e := in.note(t.At, "reclaimed", t.Worker.Boot, t.Reason)
		e.Text = fmt.Sprintf("%s taken back from %s on %s by %s: %s", words.Count(int64(e.Count), "job"),
			quote(t.Worker.Name), quote(t.Worker.Host), quote(t.Actor), quote(t.Reason))
	}
	lost := make(map[event.Worker]bool)
	for _, l := range query.Losses(in.Taken) {
		in.LostWorkers = append(in.LostWorkers, &LostWorker{Loss: l})
		lost[l.Worker] = true
	}
	from, err := projection.AtTime(in.ctx, in.tx, in.Window.From)
	if err != nil {
		return err
	}
	to, err := projection.AtTime(in.ctx, in.tx, end)
	if err != nil {
		return err
	}
	silent, err := status.LostWorkers(in.ctx, in.tx, from, to)
	in.Silent = slices.DeleteFunc(silent, func(w status.LostWorker) bool { return lost[w.Worker.Worker] })
	return err
}

// eventsOfTimeline are the kinds of events about workers, schedules and the ledger, and refused writes. All
// other events are about jobs, or are acts.
var eventsOfTimeline = event.KindsThat(func(k event.Kind) bool {
	return k == event.KindRefused || !k.OfJob() && !k.OfOperator()
})

// askEvents notes the other events that the timeline has, and the writes of those who had lost jobs.
func (in *investigation) askEvents(time.Time) error {
	f := ledger.Filter{After: in.Window.After, Until: in.Window.Until, Kinds: eventsOfTimeline}
	for e, err := range in.tx.Events(in.ctx, f) {
		if err != nil {
			return err
		}
		switch b := e.Body.(type) {
		case *event.Refused:
			in.Refused = append(in.Refused, e)
			for _, l := range slices.Backward(in.LostWorkers) { // the latest loss of the process
				if l.Worker == e.Worker && !l.Jobs[0].At.After(e.At) {
					l.Refused++
					if l.Back.IsZero() {
						l.Back = e.At
					}
					break
				}
			}
			entry := in.note(e.At, "refused", e.Worker.Boot, b.Command)
			entry.Text = fmt.Sprintf("%s (%s) of %s refused: %s", words.Count(int64(entry.Count), "write"),
				quote(b.Command), quote(e.Actor), quote(b.Why))
		case *event.ScheduleSkipped:
			in.note(e.At, "skipped", b.Name, b.Why).Text = eventText(e)
		default:
			entry := in.note(e.At, fmt.Sprint(e.Pos))
			entry.Text, entry.ByOperator = eventText(e), e.Worker.Name == ""
		}
	}
	return nil
}

// eventText is the line of e in the timeline.
func eventText(e event.Event) string {
	kind := strings.ReplaceAll(e.Kind().String(), "_", " ")
	return fmt.Sprintf("%s: %s", kind, quote(words.Describe(e, time.UTC)))
}

// note returns a new entry of the timeline, or the one of what has the same key and was shortly before, and
// counts it.
func (in *investigation) note(at time.Time, key ...string) *Entry {
	id := strings.Join(key, "\x00")
	same := in.recent[id]
	if same == nil || at.Sub(same.Last) > sameEntry {
		same = &Entry{First: at}
		in.recent[id], in.Timeline = same, append(in.Timeline, same)
	}
	same.Count++
	same.Last = at
	return same
}
