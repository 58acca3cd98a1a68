package audit

import "jobledger/ledger/event"

// Finding is one defect that Verify found.
type Finding struct {
	Code   string      `json:"code"`            // V01…, one per check
	Pos    int64       `json:"pos,omitempty"`   // the event, where one is to blame
	Job    event.JobID `json:"job,omitempty"`   // the job, where one is concerned
	Field  string      `json:"field,omitempty"` // the column that differs
	Detail string      `json:"detail"`
}

// The checks of Verify.
const (
	FindStructure  = "V01" // the database's own integrity check
	FindGuard      = "V02" // a table, index, trigger or view is missing or altered
	FindGap        = "V03" // pos is not dense
	FindClock      = "V04" // at decreases along pos
	FindDamaged    = "V05" // an event cannot be read
	FindIllegal    = "V06" // an event cannot follow: seq, transition, owner, token, attempt
	FindBody       = "V07" // a payload or result differs from its event, or is missing unexplained
	FindDiffers    = "V08" // a row of jobs differs from the fold of the events
	FindMissing    = "V09" // a job has no row
	FindExtra      = "V10" // a row has no job
	FindQueue      = "V11" // a row of queues differs from the fold of the events
	FindEarly      = "V12" // a claim before run_at, or from a paused queue
	FindReclaim    = "V13" // a reclaim before the lease's end, or with facts that are not the job's
	FindTooOften   = "V14" // a retry beyond max_attempts, or no retry before that
	FindForm       = "V15" // an event with columns, fields or values that no command writes
	FindRefused    = "V16" // a refused write of a live claim, or recorded twice
	FindPlace      = "V17" // one boot id of worker processes on two hosts, or a presence of no process
	FindUnfit      = "V18" // a worker claims what it did not announce, or stops without a start
	FindTime       = "V19" // a lease end or a future time that the rules do not allow
	FindCount      = "V20" // a wrong count of what was erased, rebuilt, imported or restored
	FindStopped    = "V21" // the end of a command whose claim was not lost, or recorded twice
	FindKeyframe   = "V22" // a keyframe differs from what the events up to it add up to
	FindLimit      = "V23" // a row of limits differs from the fold of the events
	FindOverLimit  = "V24" // a claim above the limit in force, or that is wrong about whether there was one
	FindBlock      = "V25" // the hash of a block differs from its events, which were changed or are not there
	FindSeal       = "V26" // a seal differs from the events below it, or from its own text
	FindSchedule   = "V27" // a row of timetable differs from the fold of the events
	FindArchived   = "V28" // an archived event with a range or a root that is not that of the events
	FindGroup      = "V29" // a row of group_heads differs from the queued jobs, the last or the live claims
	FindDependency = "V30" // what a job waits for differs from the events, or an event says otherwise
	FindRemoved    = "V32" // a wrong count of what has left the ledger, or of what is left
	FindKey        = "V31" // a job has a key that is not for ever while another one has it
	maxFindings    = 1000  // then Verify stops looking
)

// Verified is the result of Verify.
type Verified struct {
	Since    int64 // the events after this one were checked; 0: all
	Until    int64 // up to this one
	Events   int64
	Jobs     int64 // whose events these were
	Findings []Finding
	Stopped  bool // an event could not be folded; later ones were not checked
}
