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

// ScheduleSet: from this event on, such jobs are enqueued at these times. A later one replaces it.
type ScheduleSet struct {
	Name  string `event:"name,label,required"` // of the schedule
	Queue string `event:"queue,label,required"`
	Cron  string `event:"cron"` // five fields, or a name such as @daily; "": Every says when
	// the period of the ticks; 0: Cron says when
	Every time.Duration `event:"every"`
	// of Every: the ticks are this moment and those each Every after it
	From time.Time `event:"from"`
	// of Cron: the IANA name of the time zone; "": Every says when
	Zone   string        `event:"zone"`
	Jitter time.Duration `event:"jitter"` // jobs run up to so much later than their tick
	// what is done about missed ticks
	CatchUp string        `event:"catch_up,required,oneof=last|all|none"`
	Within  time.Duration `event:"within"` // a tick that is older makes no job; 0: no limit
	// what is done while the last job has not ended
	Overlap string `event:"overlap,required,oneof=skip|wait|replace|allow"`

	// of the jobs, as what follows
	Priority    int               `event:"priority,min=-100,max=100"`
	MaxAttempts int               `event:"max_attempts,min=1"`
	MaxRuntime  time.Duration     `event:"max_runtime"`
	Version     string            `event:"version,label"`
	Requires    []string          `event:"requires,label"`
	Tags        map[string]string `event:"tags"`
	Payload     string            `event:"payload"` // of the jobs
	Form        string            `event:"form,oneof=argv"`
	Group       string            `event:"group"` // of the jobs
	Backoff     Backoff           // of the jobs; zero: that of their queue

	Next   time.Time `event:"next"` // the first tick; zero: none, or the schedule is paused
	Reason string    `event:"reason"`
}

// SchedulePaused: the schedule ticks no more until it is resumed.
type SchedulePaused struct {
	Name   string `event:"name,label,required"`
	Reason string `event:"reason"`
}

// ScheduleResumed: the schedule ticks again. The ticks meanwhile were not missed: there were none.
type ScheduleResumed struct {
	Name   string    `event:"name,label,required"`
	Next   time.Time `event:"next"` // the first tick from now on; zero: none
	Reason string    `event:"reason"`
}

// ScheduleRemoved: there is no such schedule any more. Its jobs stay.
type ScheduleRemoved struct {
	Name   string `event:"name,label,required"`
	Reason string `event:"reason"`
}

// ScheduleSkipped: ticks that made no job.
type ScheduleSkipped struct {
	Name  string    `event:"name,label,required"`
	From  time.Time `event:"from,required"` // the first tick that was skipped
	To    time.Time `event:"to,required"`   // the last one
	Count int64     `event:"count,min=1"`   // how many ticks
	// why they made no job
	Why string `event:"why,required,oneof=missed|late|too_old|too_many|overlap|refused"`
	// the same in words; "": nothing more is known
	Detail string    `event:"detail"`
	Next   time.Time `event:"next"` // the schedule's next tick; zero: none
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
	f.text("form", &b.Form)
	f.text("group", &b.Group)
	b.Backoff.fields(f)
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

// schedule checks when a schedule ticks.
func (s *validator) schedule(b *ScheduleSet) {
	switch periodic := b.Every > 0; {
	case periodic == (b.Cron != ""):
		s.fail("cron", b.Cron)
	case periodic == b.From.IsZero():
		s.fail("from", b.From)
	case periodic != (b.Zone == ""):
		s.fail("zone", b.Zone)
	}
}
