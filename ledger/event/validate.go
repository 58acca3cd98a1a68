package event

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Validate returns what is wrong with e on its own: a part that events of its kind need and that is missing,
// a part that they cannot have, or a value that no command accepts. It does not compare e with other events.
func (e *Event) Validate() error {
	if err := e.envelope(); err != nil {
		return err
	}
	return e.content()
}

// envelope checks the parts of e that all kinds share.
func (e *Event) envelope() error {
	k := e.Kind()
	moves := k.HasSeq() // changes a job's state
	claim := k.OfJob() && (e.Attempt != 0 || e.Worker != (Worker{}))
	switch {
	case e.At.IsZero() || Micros(e.At) < 0 || Micros(e.At) > lastMicros:
		return fmt.Errorf("%s at an impossible time", k)
	case e.Actor == "":
		return fmt.Errorf("%s without an actor", k)
	case (e.N != 0) != k.OfJob():
		return fmt.Errorf("%s with job number %d", k, e.N)
	case (e.Seq > 0) != moves || e.Seq < 0:
		return fmt.Errorf("%s with seq %d", k, e.Seq)
	case moves != (e.To != 0) || (moves && k != KindEnqueued) != (e.From != 0):
		return fmt.Errorf("%s from %q to %q", k, e.From, e.To)
	case k == KindEnqueued && !isULID(string(e.Job)):
		return fmt.Errorf("%s with the id %.60q", k, e.Job)
	case k.StoresToken() && e.Token == "":
		return fmt.Errorf("%s without a token", k)
	case claim && (e.Attempt < 1 || e.Worker.Name == "" || e.Worker.Boot == ""):
		return fmt.Errorf("%s of attempt %d by %q, boot %q", k, e.Attempt, e.Worker.Name, e.Worker.Boot)
	case claim && !k.is(ofClaim|mayBeOfClaim):
		return fmt.Errorf("%s of a claim", k)
	case !claim && k.is(ofClaim):
		return fmt.Errorf("%s of no claim", k)
	case !k.OfJob() && e.Attempt != 0:
		return fmt.Errorf("%s of attempt %d", k, e.Attempt)
	case !k.OfJob() && (e.Worker.Name != "" && e.Worker.Boot != "") != k.ShowsProcess():
		return fmt.Errorf("%s of the worker %q, boot %q", k, e.Worker.Name, e.Worker.Boot)
	case !k.OfJob() && k.ShowsProcess() && e.Actor != "worker:"+e.Worker.Name:
		return fmt.Errorf("%s of the worker %q by %q", k, e.Worker.Name, e.Actor)
	}
	return nil
}

// isULID reports whether text is a ULID as this program writes it.
func isULID(text string) bool { return JobID(text).IsValid() }

// IsValid reports whether id is the id of a job: a ULID in capitals. What a database holds may be anything.
func (id JobID) IsValid() bool {
	text := string(id)
	return len(text) == 26 && text[0] <= '7' && strings.Trim(text, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ""
}

// content checks the body of e: each field by the rules of its tag, and fields that must agree.
func (e *Event) content() error {
	s := validator{kind: e.Kind()}
	body, rules := reflect.ValueOf(e.Body).Elem(), rulesOf()[e.Kind()]
	for i := range rules {
		v := body.FieldByIndex(rules[i].index)
		if v.Kind() == reflect.Pointer {
			if rules[i].unbounded || v.IsNil() {
				continue
			}
			v = v.Elem()
		}
		rules[i].check(&s, v)
	}
	switch b := e.Body.(type) {
	case *Enqueued:
		switch {
		case b.Schedule == "" && !b.Tick.IsZero() || b.Tick.IsZero() && !b.Next.IsZero():
			s.fail("tick", FormatTime(b.Tick))
		case !b.Next.IsZero() && !b.Next.After(b.Tick):
			s.fail("next", FormatTime(b.Next))
		}
		s.backoff(b.Backoff)
		if b.Blocked && len(b.After) == 0 && !b.Hold || b.Hold && !b.Blocked {
			s.fail("blocked", b.Blocked)
		}
		if b.UniqueWhile != "" && b.Key == "" {
			s.fail("key", b.Key)
		}
		if b.Form == FormArgv && !slices.Contains(b.Requires, LabelArgv) {
			s.fail("form", b.Form)
		}
	case *Retried:
		if b.Because != "" && (b.Alone || !b.RunAt.IsZero() || b.MaxRuntime > 0) {
			s.fail("because", b.Because)
		}
		if b.KeyTaken && b.Because == "" {
			s.fail("key_taken", b.KeyTaken)
		}
	case *Unblocked:
		if b.Hold == (b.Because != "") || b.Blocked && !b.Hold {
			s.fail("hold", b.Hold)
		}
	case *Succeeded:
		if b.ResultSHA256 == "" && b.ResultBytes != 0 {
			s.fail("result_bytes", b.ResultBytes)
		}
	case *Refused:
		if b.Command != "succeed" && (b.OfferedSHA256 != "" || b.OfferedBytes != 0) {
			s.fail("offered_bytes", b.OfferedBytes)
		}
	case *QueueLimited:
		s.rate("rate", b.Rate, b.RatePer, b.Burst)
		s.rate("group_rate", b.GroupRate, b.GroupRatePer, b.GroupBurst)
		if b.Group != "" && (b.PerGroup > 0 || b.GroupRate > 0 || b.Ageing > 0) {
			s.fail("group", b.Group)
		}
	case *QueueDefaults:
		s.backoff(b.Backoff)
	case *Edited:
		s.backoff(b.Backoff)
	case *Restored:
		if (b.HeadSize == 0) != (b.HeadRoot == "") {
			s.fail("head_root", b.HeadRoot)
		}
	case *Imported:
		s.between("missing_bodies", b.MissingBodies, 0, b.Events)
	case *Archived:
		s.archived(b)
	case *Removed:
		s.removed(b)
	case *ArchiveDescribed:
		if s.parts(b.Parts); b.Hi%archivedBlock != 0 {
			s.fail("hi", b.Hi)
		}
		s.between("left", s.left(b.Left, b.Hi), 0, b.Hi)
	case *ArchivePolicy:
		if b.OlderThan == 0 && (b.KeepFailed != 0 || b.RemoveLogs || b.KeepBodies) {
			s.fail("keep_failed", b.KeepFailed)
		}
	case *ScheduleSet:
		s.schedule(b)
	case *ScheduleSkipped:
		if b.To.Before(b.From) || (b.Count == 1) != b.To.Equal(b.From) {
			s.fail("to", FormatTime(b.To))
		}
	}
	return s.err
}

// validator keeps the first error of a body.
type validator struct {
	kind Kind
	err  error
}

func (s *validator) fail(field string, value any) {
	if s.err == nil {
		s.err = fmt.Errorf("%s with %s %.60q", s.kind, field, fmt.Sprint(value))
	}
}

func (s *validator) between(field string, n, least, most int64) {
	if n < least || n > most {
		s.fail(field, n)
	}
}

// MaxGroup is how many bytes the name of a group may have.
const MaxGroup = 255

// MaxRunning is the greatest limit of jobs that run at once.
const MaxRunning = 1_000_000

// MaxRatePer is the longest time within which a rate counts.
const MaxRatePer = 31 * 24 * time.Hour

// isGroup reports whether text may be after a lane: it has no control characters.
func isGroup(text string) bool {
	return len(text) <= MaxGroup && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// isLabel reports whether text may be part of a lane.
func isLabel(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
}

// isDigest reports whether text is the hex of a SHA-256.
func isDigest(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// rate checks how many jobs may start within a time.
func (s *validator) rate(field string, n int, per time.Duration, burst int) {
	if (n > 0) != (per > 0) || burst > 0 && n == 0 {
		s.fail(field, n)
	}
}

func (s *validator) backoff(b Backoff) {
	if !b.Valid() {
		s.fail("backoff_min", b)
	}
}
