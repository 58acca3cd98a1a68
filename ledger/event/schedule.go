package event

import "time"

// What is done about ticks that came while no process looked (ScheduleSet.CatchUp).
const (
	CatchUpLast = "last" // one job, for the latest
	CatchUpAll  = "all"  // a job for each
	CatchUpNone = "none" // no job for a tick that is more than a minute late
)

// What is done where the last job of the schedule has not ended (ScheduleSet.Overlap).
const (
	OverlapSkip    = "skip"    // the new tick makes no job
	OverlapWait    = "wait"    // the new one waits for the end of the last; a third tick makes no job
	OverlapReplace = "replace" // the last job is cancelled
	OverlapAllow   = "allow"   // both run
)

// Why a tick made no job (ScheduleSkipped.Why).
const (
	SkippedMissed  = "missed"   // a later tick was due too, and one job is enough
	SkippedLate    = "late"     // more than a minute late, and late ticks make none
	SkippedTooOld  = "too_old"  // older than the schedule's limit
	SkippedTooMany = "too_many" // more ticks were due than are caught up with
	SkippedOverlap = "overlap"  // the job before it had not ended
	SkippedRefused = "refused"  // its job could not be enqueued
)

// ScheduleSet: from here on jobs of this form are enqueued at these times. A later one replaces it.
type ScheduleSet struct {
	Name    string
	Queue   string
	Cron    string        // five fields, or a name such as @daily; "": Every says when
	Every   time.Duration // 0: Cron says when
	From    time.Time     // of Every: the ticks are this moment and those each Every after it
	Zone    string        // of Cron: the IANA name of the time zone
	Jitter  time.Duration // jobs run up to so much later than their tick
	CatchUp string        // CatchUpLast, CatchUpAll or CatchUpNone
	Within  time.Duration // a tick that is older makes no job; 0: no limit
	Overlap string        // OverlapSkip, OverlapWait, OverlapReplace or OverlapAllow

	Priority    int // this and what follows is the form of the jobs
	MaxAttempts int
	MaxRuntime  time.Duration
	Version     string
	Requires    []string
	Tags        map[string]string
	Payload     string

	Next   time.Time // the first tick; zero: none, or the schedule is paused
	Reason string
}

// SchedulePaused: the schedule ticks no more until it is resumed.
type SchedulePaused struct{ Name, Reason string }

// ScheduleResumed: the schedule ticks again. The ticks meanwhile were not missed: there were none.
type ScheduleResumed struct {
	Name   string
	Next   time.Time // the first tick from now on; zero: none
	Reason string
}

// ScheduleRemoved: there is no such schedule any more. Its jobs stay.
type ScheduleRemoved struct{ Name, Reason string }

// ScheduleSkipped: ticks that made no job.
type ScheduleSkipped struct {
	Name   string
	From   time.Time // the first of them
	To     time.Time // the last of them
	Count  int64
	Why    string
	Detail string
	Next   time.Time // the schedule's next tick; zero: none
}

// Kind returns KindScheduleSet.
func (*ScheduleSet) Kind() Kind { return KindScheduleSet }

// Kind returns KindSchedulePaused.
func (*SchedulePaused) Kind() Kind { return KindSchedulePaused }

// Kind returns KindScheduleResumed.
func (*ScheduleResumed) Kind() Kind { return KindScheduleResumed }

// Kind returns KindScheduleRemoved.
func (*ScheduleRemoved) Kind() Kind { return KindScheduleRemoved }

// Kind returns KindScheduleSkipped.
func (*ScheduleSkipped) Kind() Kind { return KindScheduleSkipped }

func (b *ScheduleSet) fields(f *fields) {
	f.text("name", &b.Name)
	f.text("queue", &b.Queue)
	f.sparse = true
	f.text("cron", &b.Cron)
	f.duration("every", &b.Every)
	f.timeText("from", &b.From)
	f.text("zone", &b.Zone)
	f.duration("jitter", &b.Jitter)
	f.text("catch_up", &b.CatchUp)
	f.duration("within", &b.Within)
	f.text("overlap", &b.Overlap)
	f.int("priority", &b.Priority)
	f.int("max_attempts", &b.MaxAttempts)
	f.duration("max_runtime", &b.MaxRuntime)
	f.text("version", &b.Version)
	f.list("requires", &b.Requires)
	f.dict("tags", &b.Tags)
	f.text("payload", &b.Payload)
	f.timeText("next", &b.Next)
	f.text("reason", &b.Reason)
}

func (b *SchedulePaused) fields(f *fields) {
	f.text("name", &b.Name)
	f.text("reason", &b.Reason)
}

func (b *ScheduleResumed) fields(f *fields) {
	f.text("name", &b.Name)
	f.timeText("next", &b.Next)
	f.text("reason", &b.Reason)
}

func (b *ScheduleRemoved) fields(f *fields) {
	f.text("name", &b.Name)
	f.text("reason", &b.Reason)
}

func (b *ScheduleSkipped) fields(f *fields) {
	f.text("name", &b.Name)
	f.timeText("from", &b.From)
	f.timeText("to", &b.To)
	f.int64("count", &b.Count)
	f.text("why", &b.Why)
	f.sparse = true
	f.text("detail", &b.Detail)
	f.timeText("next", &b.Next)
}

// schedule checks what the events of schedules say.
func (s *validator) schedule(body Body) {
	switch b := body.(type) {
	case *ScheduleSet:
		s.label("name", b.Name, true)
		s.label("queue", b.Queue, true)
		s.oneOf("catch_up", b.CatchUp, CatchUpLast, CatchUpAll, CatchUpNone)
		s.oneOf("overlap", b.Overlap, OverlapSkip, OverlapWait, OverlapReplace, OverlapAllow)
		s.between("priority", int64(b.Priority), -100, 100)
		s.between("max_attempts", int64(b.MaxAttempts), 1, 1<<53)
		s.between("max_runtime", int64(b.MaxRuntime), 0, 1<<62)
		s.between("jitter", int64(b.Jitter), 0, 1<<62)
		s.between("within", int64(b.Within), 0, 1<<62)
		s.label("version", b.Version, false)
		for _, label := range b.Requires {
			s.label("requires", label, true)
		}
		switch periodic := b.Every > 0; {
		case b.Every < 0 || periodic == (b.Cron != ""):
			s.fail("cron", b.Cron)
		case periodic == b.From.IsZero():
			s.fail("from", b.From)
		case periodic != (b.Zone == ""):
			s.fail("zone", b.Zone)
		}
	case *SchedulePaused:
		s.label("name", b.Name, true)
	case *ScheduleResumed:
		s.label("name", b.Name, true)
	case *ScheduleRemoved:
		s.label("name", b.Name, true)
	case *ScheduleSkipped:
		s.label("name", b.Name, true)
		s.time("from", b.From)
		s.time("to", b.To)
		s.between("count", b.Count, 1, 1<<53)
		s.oneOf("why", b.Why, SkippedMissed, SkippedLate, SkippedTooOld, SkippedTooMany, SkippedOverlap,
			SkippedRefused)
		if b.To.Before(b.From) || (b.Count == 1) != b.To.Equal(b.From) {
			s.fail("to", FormatTime(b.To))
		}
	}
}
