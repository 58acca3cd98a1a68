package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rivo/uniseg"

	"jobledger/commands"
	"jobledger/ledger"
)

// tell is what e says in words, beside when, which kind and to which state: who, how, until when, why. The detail
// of an error is left to those who have room for it.
func (p *program) tell(e ledger.Event) string {
	var s sentence
	who := fmt.Sprintf("attempt %d by %s", e.Attempt, e.Worker.Name)
	switch b := e.Body.(type) {
	case *ledger.Enqueued:
		s.add("in queue %s by %s", b.Queue, e.Actor)
		s.addIf(b.RunAt.After(e.At), "runs at %s", p.moment(b.RunAt, e.At))
		s.addIf(b.Priority != 0, "priority %d", b.Priority)
		s.addIf(b.Key != "", "key %q", b.Key)
		for _, name := range sortedNames(b.Tags) {
			s.add("tag %s=%s", name, b.Tags[name])
		}
		s.addIf(b.Version != "", "only for version %s", b.Version)
		s.addIf(len(b.Requires) > 0, "only with %s", strings.Join(b.Requires, ", "))
		s.addIf(b.MaxRuntime > 0, "max runtime %s", formatDuration(b.MaxRuntime))
		s.add("up to %s", count(int64(b.MaxAttempts), "attempt"))
		s.add("payload of %s", count(b.PayloadBytes, "byte"))
	case *ledger.Claimed:
		s.add("%s (%s)", who, process(e.Worker))
		s.add("lease until %s", p.moment(b.LeaseUntil, e.At))
		s.addIf(b.MaxRuntime > 0, "max runtime %s", formatDuration(b.MaxRuntime))
	case *ledger.Heartbeat:
		s.add("%s", who)
		s.add("lease until %s", p.moment(b.LeaseUntil, e.At))
		if b.Progress != nil {
			s.add("%s", percent(*b.Progress))
		}
		s.addIf(b.Note != "", "%s", b.Note)
	case *ledger.Succeeded:
		s.add("%s", who)
		s.exit(b.ExitCode, "")
		s.addIf(b.ResultSHA256 != "", "result of %s", count(b.ResultBytes, "byte"))
	case *ledger.Failed:
		s.add("%s", who)
		s.addIf(b.ErrorCode != "", "error %s", b.ErrorCode)
		s.exit(b.ExitCode, b.Signal)
		s.add("%s", p.again(b.RetryAt, e.At))
	case *ledger.Released:
		s.add("%s", who)
		s.addIf(b.Snooze, "the job asked to be run later")
		s.addIf(b.Reason != "", "%s", b.Reason)
		s.add("runs again at %s", p.moment(b.RunAt, e.At))
	case *ledger.Reclaimed:
		s.add("attempt %d taken from %s by %s", e.Attempt, e.Worker.Name, e.Actor)
		s.add("%s", map[string]string{ledger.LeaseExpired: "lease expired", ledger.MaxRuntime: "max runtime exceeded"}[b.Reason])
		s.add("lease ended at %s", p.moment(b.LeaseUntil, e.At))
		s.add("last heartbeat %s", p.moment(b.LastHeartbeat, e.At))
		s.add("%s", p.again(b.RetryAt, e.At))
	case *ledger.Cancelled:
		s.add("by %s", e.Actor)
		s.addIf(b.Reason != "", "%s", b.Reason)
		s.addIf(e.Attempt > 0, "attempt %d of %s was under way", e.Attempt, e.Worker.Name)
	case *ledger.Retried:
		s.add("by %s", e.Actor)
		s.addIf(b.Reason != "", "%s", b.Reason)
	case *ledger.Rescheduled:
		s.add("by %s", e.Actor)
		s.add("runs at %s", p.moment(b.RunAt, e.At))
		s.add("priority %d", b.Priority)
		s.addIf(b.Reason != "", "%s", b.Reason)
	case *ledger.Refused:
		s.add("%s by %s", b.Command, e.Actor)
		s.addIf(e.Attempt > 0, "token of attempt %d by %s", e.Attempt, e.Worker.Name)
		s.addIf(e.Attempt == 0, "token %s", e.Token)
		s.add("%s", b.Why)
		s.addIf(b.OfferedSHA256 != "" || b.OfferedBytes > 0, "offered a result of %s, SHA-256 %s", count(b.OfferedBytes, "byte"), orNone(b.OfferedSHA256))
		s.add("nothing was changed")
	case *ledger.Erased:
		s.add("by %s", e.Actor)
		s.add("%s of payload and results", count(b.Bytes, "byte"))
		s.addIf(b.Reason != "", "%s", b.Reason)
	case *ledger.QueuePaused:
		s.add("queue %s by %s", b.Queue, e.Actor)
		s.addIf(b.Reason != "", "%s", b.Reason)
	case *ledger.QueueResumed:
		s.add("queue %s by %s", b.Queue, e.Actor)
		s.addIf(b.Reason != "", "%s", b.Reason)
	case *ledger.WorkerStarted:
		s.add("%s (%s)", e.Worker.Name, process(e.Worker))
		s.addIf(len(b.Queues) > 0, "queues %s", strings.Join(b.Queues, ", "))
		s.addIf(len(b.Capabilities) > 0, "capabilities %s", strings.Join(b.Capabilities, ", "))
	case *ledger.WorkerStopped:
		s.add("%s (%s)", e.Worker.Name, process(e.Worker))
	case *ledger.Rebuilt:
		s.add("by %s", e.Actor)
		s.add("%s, of whose rows %d differed, %d were missing, %d too many", count(b.Jobs, "job"), b.Changed, b.Missing, b.Extra)
	case *ledger.Restored:
		s.add("%s from %s by %s", count(b.Events, "event"), b.From, e.Actor)
		if b.Lost != nil {
			s.addIf(*b.Lost > 0, "%s of the ledger before it not among them", count(int64(*b.Lost), "event"))
		}
	case *ledger.Imported:
		s.add("%s from %s by %s", count(b.Events, "event"), b.From, e.Actor)
		s.addIf(b.MissingBodies > 0, "%d of their payloads and results were missing", b.MissingBodies)
	}
	// What an owner does is said by the owner, unless an operator presented the token.
	if e.Attempt > 0 && e.Kind() <= ledger.KindReleased && e.Actor != "worker:"+e.Worker.Name {
		s.add("said by %s", e.Actor)
	}
	return strings.Join(s, "; ")
}

// sentence is what tell has to say, part by part.
type sentence []string

func (s *sentence) add(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

func (s *sentence) addIf(really bool, format string, args ...any) {
	if really {
		s.add(format, args...)
	}
}

func (s *sentence) exit(code *int, signal string) {
	if code != nil {
		s.add("exit code %d", *code)
	}
	s.addIf(signal != "", "killed by signal %s", signal)
}

func (p *program) again(retryAt, at time.Time) string {
	if retryAt.IsZero() {
		return "gave up"
	}
	return "next try at " + p.moment(retryAt, at)
}

// process is which one of the processes of a name w is; the boot, which settles it, is in --json.
func process(w ledger.Worker) string {
	text := fmt.Sprintf("pid %d on %s", w.PID, orNone(w.Host))
	if w.Version != "" {
		text += ", version " + w.Version
	}
	return text
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func percent(progress float64) string { return fmt.Sprintf("%.0f%% done", 100*progress) }

// count is a number with its noun: "1 byte", "2 bytes".
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func sortedNames(tags map[string]string) []string {
	names := make([]string, 0, len(tags))
	for name := range tags {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// local is t in the zone in which times are shown.
func (p *program) local(t time.Time) time.Time { return t.In(p.now().Location()) }

// moment is t as seen at some other moment: the time of day if it is the same day, and the distance.
func (p *program) moment(t, from time.Time) string {
	t, from = p.local(t), p.local(from)
	text := t.Format("15:04:05")
	if t.YearDay() != from.YearDay() || t.Year() != from.Year() {
		text = formatTime(t)
	}
	switch d := t.Sub(from); {
	case d > 0:
		return fmt.Sprintf("%s (in %s)", text, briefly(d))
	case d < 0:
		return fmt.Sprintf("%s (%s before)", text, briefly(-d))
	}
	return text
}

// briefly is d in its two largest units, below a minute to the millisecond.
func briefly(d time.Duration) string {
	if d < time.Minute {
		if d < time.Millisecond {
			return d.String()
		}
		return d.Truncate(time.Millisecond).String()
	}
	return roughly(d)
}

// eventTime is the time of an event in a listing: to the millisecond, with its offset, fit for a flag.
func (p *program) eventTime(e ledger.Event) string {
	return p.local(e.At).Format("2006-01-02 15:04:05.000-07:00")
}

// printEvent prints the fixed columns of a listing and then text, which is wrapped on a terminal: beside the columns
// where there is room, else below them. Piped, it is one line. paints color the columns, in their order.
func (p *program) printEvent(columns []string, paints []style, text string) error {
	var plain, line strings.Builder
	for i, c := range columns {
		plain.WriteString(c + "  ")
		line.WriteString(p.paint(paints[i], c) + "  ")
	}
	text = escape(text)
	indent := uniseg.StringWidth(plain.String())
	if p.width == 0 || indent+uniseg.StringWidth(text) <= p.width {
		_, err := p.stdout.WriteString(strings.TrimRight(line.String()+text, " ") + "\n")
		return err
	}
	lines := wrap(text, p.width-indent)
	if p.width-indent < 60 {
		indent = 4
		lines = append([]string{""}, wrap(text, max(p.width-indent, 20))...)
	}
	for i, l := range lines {
		if i == 0 {
			l = strings.TrimRight(line.String()+l, " ")
		} else {
			l = strings.Repeat(" ", indent) + l
		}
		if _, err := p.stdout.WriteString(l + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// kindLabel is the word of e's kind for a listing. A write that was refused stands out without any color.
func kindLabel(e ledger.Event) (label string, s style) {
	word := e.Kind().String()
	s = stateStyles[word]
	if e.Kind() == ledger.KindRefused {
		return strings.ToUpper(word), s
	}
	return word, s
}

// led is the state to which e led, for a listing.
func led(e ledger.Event) (label string, s style) {
	if e.To == 0 {
		return pad("", 11, false), plain
	}
	return pad("→ "+e.To.String(), 11, false), stateStyles[e.To.String()]
}

// jobNumber is the number of the job that text names. History outlives the table jobs: without a row there, a whole
// id is looked up among the events.
func jobNumber(ctx context.Context, tx *ledger.Tx, text string) (int64, error) {
	j, err := jobNamed(ctx, tx, text)
	if errors.Is(err, commands.ErrNoJob) && len(text) == ulid.EncodedSize {
		if n, lookErr := tx.Number(ctx, ledger.JobID(strings.ToUpper(text))); lookErr != nil || n != 0 {
			return n, lookErr
		}
	}
	return j.N, err
}
