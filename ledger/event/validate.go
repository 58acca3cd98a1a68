package event

import (
	"fmt"
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
func isULID(text string) bool {
	return len(text) == 26 && text[0] <= '7' && strings.Trim(text, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ""
}

// content checks the body of e.
func (e *Event) content() error {
	s := validator{kind: e.Kind()}
	switch b := e.Body.(type) {
	case *Enqueued:
		s.label("queue", b.Queue, true)
		s.between("priority", int64(b.Priority), -100, 100) // a lane has room for these
		s.time("run_at", b.RunAt)
		s.between("max_attempts", int64(b.MaxAttempts), 1, 1<<53)
		s.between("max_runtime", int64(b.MaxRuntime), 0, 1<<62)
		s.label("version", b.Version, false)
		for _, label := range b.Requires {
			s.label("requires", label, true)
		}
		s.digest("payload_sha256", b.PayloadSHA256, true)
		s.between("payload_bytes", b.PayloadBytes, 0, 1<<53)
		s.label("schedule", b.Schedule, false)
		switch {
		case b.Schedule == "" && !b.Tick.IsZero() || b.Tick.IsZero() && !b.Next.IsZero():
			s.fail("tick", FormatTime(b.Tick))
		case !b.Next.IsZero() && !b.Next.After(b.Tick):
			s.fail("next", FormatTime(b.Next))
		}
		s.group("group", b.Group)
		s.backoff(b.Backoff)
		for _, ref := range b.After {
			s.reference("after", ref)
		}
		for _, ref := range b.Before {
			s.reference("before", ref)
		}
		if b.Blocked && len(b.After) == 0 && !b.Hold || b.Hold && !b.Blocked {
			s.fail("blocked", b.Blocked)
		}
		if b.UniqueWhile != "" {
			s.oneOf("unique_while", b.UniqueWhile, WhileQueued, WhileUnfinished)
		}
		if b.UniqueWhile != "" && b.Key == "" {
			s.fail("key", b.Key)
		}
	case *Cancelled:
		s.job("because", b.Because)
	case *Retried:
		s.job("because", b.Because)
		if b.Because != "" && (b.Alone || !b.RunAt.IsZero()) {
			s.fail("because", b.Because)
		}
		if b.KeyTaken && b.Because == "" {
			s.fail("key_taken", b.KeyTaken)
		}
	case *Replaced:
		s.digest("payload_sha256", b.PayloadSHA256, true)
		s.between("payload_bytes", b.PayloadBytes, 0, 1<<53)
	case *Unblocked:
		s.job("because", b.Because)
		if b.Hold == (b.Because != "") || b.Blocked && !b.Hold {
			s.fail("hold", b.Hold)
		}
	case *Claimed:
		s.time("lease_until", b.LeaseUntil)
		s.between("max_runtime", int64(b.MaxRuntime), 0, 1<<62)
	case *Heartbeat:
		s.time("lease_until", b.LeaseUntil)
		if b.Progress != nil && !(*b.Progress >= 0 && *b.Progress <= 1) {
			s.fail("progress", *b.Progress)
		}
	case *Succeeded:
		s.digest("result_sha256", b.ResultSHA256, false)
		s.between("result_bytes", b.ResultBytes, 0, 1<<53)
		if b.ResultSHA256 == "" && b.ResultBytes != 0 {
			s.fail("result_bytes", b.ResultBytes)
		}
		s.output(b.Output)
	case *Failed:
		s.label("error_code", b.ErrorCode, true)
		s.output(b.Output)
	case *Released:
		s.time("run_at", b.RunAt)
		s.output(b.Output)
	case *Reclaimed:
		s.oneOf("reason", b.Reason, LeaseExpired, MaxRuntime)
		s.time("last_heartbeat", b.LastHeartbeat)
		s.time("lease_until", b.LeaseUntil)
	case *Rescheduled:
		s.time("run_at", b.RunAt)
		s.between("priority", int64(b.Priority), -100, 100)
	case *Refused:
		s.oneOf("command", b.Command, "heartbeat", "succeed", "fail", "release", "take_over")
		s.given("why", b.Why)
		s.digest("offered_sha256", b.OfferedSHA256, false)
		s.between("offered_bytes", b.OfferedBytes, 0, 1<<53)
		if b.Command != "succeed" && (b.OfferedSHA256 != "" || b.OfferedBytes != 0) {
			s.fail("offered_bytes", b.OfferedBytes)
		}
	case *Stopped:
		s.oneOf("why", b.Why, WhyCancelled, WhyReclaimed)
	case *Survived:
		s.given("cannot_end", b.CannotEnd)
		s.time("lease_until", b.LeaseUntil)
	case *TakenOver:
		s.time("lease_until", b.LeaseUntil)
	case *Erased:
		s.between("bodies", int64(b.Bodies), 0, 1<<53)
		s.between("bytes", b.Bytes, 0, 1<<53)
	case *QueuePaused:
		s.label("queue", b.Queue, true)
	case *QueueResumed:
		s.label("queue", b.Queue, true)
	case *QueueLimited:
		s.label("queue", b.Queue, true)
		s.group("group", b.Group)
		s.between("running", int64(b.Running), 0, MaxRunning)
		s.between("per_group", int64(b.PerGroup), 0, MaxRunning)
		s.rate("", b.Rate, b.RatePer, b.Burst)
		s.rate("group_", b.GroupRate, b.GroupRatePer, b.GroupBurst)
		s.between("ageing", int64(b.Ageing), 0, int64(MaxRatePer))
		if b.Group != "" && (b.PerGroup > 0 || b.GroupRate > 0 || b.Ageing > 0) {
			s.fail("group", b.Group)
		}
	case *QueueDefaults:
		s.label("queue", b.Queue, true)
		s.between("max_attempts", int64(b.MaxAttempts), 0, 1<<53)
		s.between("max_runtime", int64(b.MaxRuntime), 0, 1<<62)
		s.backoff(b.Backoff)
	case *WorkerStarted:
		s.between("queues", int64(len(b.Queues)), 1, 1<<53)
	case *Rebuilt:
		s.between("jobs", b.Jobs, 0, 1<<53)
		s.between("changed", b.Changed, 0, 1<<53)
		s.between("missing", b.Missing, 0, 1<<53)
		s.between("extra", b.Extra, 0, 1<<53)
	case *Restored:
		s.between("events", b.Events, 0, 1<<53)
		if b.Lost != nil {
			s.between("lost", int64(*b.Lost), 0, 1<<53)
		}
		s.between("head_size", b.HeadSize, 0, 1<<53)
		if (b.HeadSize == 0) != (b.HeadRoot == "") {
			s.fail("head_root", b.HeadRoot)
		}
	case *Imported:
		s.between("events", b.Events, 0, 1<<53)
		s.between("missing_bodies", b.MissingBodies, 0, b.Events)
	case *Sealing:
		s.given("origin", b.Origin)
	case *Archived:
		s.archived(b)
	case *Removed:
		s.removed(b)
	case *ArchivePolicy:
		s.archivePolicy(b)
	default:
		s.schedule(b)
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

func (s *validator) given(field, text string) {
	if text == "" {
		s.fail(field, text)
	}
}

func (s *validator) time(field string, t time.Time) {
	if t.IsZero() {
		s.fail(field, "")
	}
}

func (s *validator) between(field string, n, least, most int64) {
	if n < least || n > most {
		s.fail(field, n)
	}
}

func (s *validator) oneOf(field, text string, words ...string) {
	for _, w := range words {
		if text == w {
			return
		}
	}
	s.fail(field, text)
}

// job is the id of a job, or nothing.
func (s *validator) job(field string, id JobID) {
	if id != "" && !isULID(string(id)) {
		s.fail(field, id)
	}
}

// reference is a job that is waited for, with the end that is.
func (s *validator) reference(field, ref string) {
	if _, _, err := ParseReference(ref); err != nil {
		s.fail(field, ref)
	}
}

// MaxGroup is how many bytes the name of a group may have.
const MaxGroup = 255

// MaxRunning is the greatest limit of jobs that run at once.
const MaxRunning = 1_000_000

// MaxRatePer is the longest time within which a rate counts.
const MaxRatePer = 31 * 24 * time.Hour

// group is what may be after a lane: text without control characters.
func (s *validator) group(field, text string) {
	if len(text) > MaxGroup || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		s.fail(field, text)
	}
}

// rate is how many jobs may start within a time; the names of its fields begin with prefix.
func (s *validator) rate(prefix string, n int, per time.Duration, burst int) {
	s.between(prefix+"rate", int64(n), 0, MaxRunning)
	s.between(prefix+"rate_per", int64(per), 0, int64(MaxRatePer))
	s.between(prefix+"burst", int64(burst), 0, MaxRunning)
	if (n > 0) != (per > 0) || burst > 0 && n == 0 {
		s.fail(prefix+"rate", n)
	}
}

func (s *validator) backoff(b Backoff) {
	if !b.Valid() {
		s.fail("backoff_min", b)
	}
}

// label is what may be part of a lane.
func (s *validator) label(field, text string, required bool) {
	if text == "" && required || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
		s.fail(field, text)
	}
}

// digest is the hex of a SHA-256.
func (s *validator) digest(field, text string, required bool) {
	if text == "" && !required {
		return
	}
	if len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "" {
		s.fail(field, text)
	}
}

func (s *validator) output(o Output) {
	s.between("stdout_bytes", o.StdoutBytes, 0, 1<<53)
	s.between("stderr_bytes", o.StderrBytes, 0, 1<<53)
	s.digest("stdout_kept_sha256", o.StdoutKeptSHA256, false)
	s.digest("stderr_kept_sha256", o.StderrKeptSHA256, false)
}
