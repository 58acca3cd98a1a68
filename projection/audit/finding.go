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

// The codes of findings: one for each of [Checks], which says what it finds.
const (
	FindStructure  = "V01"
	FindGuard      = "V02"
	FindGap        = "V03"
	FindClock      = "V04"
	FindDamaged    = "V05"
	FindIllegal    = "V06"
	FindBody       = "V07"
	FindDiffers    = "V08"
	FindMissing    = "V09"
	FindExtra      = "V10"
	FindQueue      = "V11"
	FindEarly      = "V12"
	FindReclaim    = "V13"
	FindTooOften   = "V14"
	FindForm       = "V15"
	FindRefused    = "V16"
	FindPlace      = "V17"
	FindUnfit      = "V18"
	FindTime       = "V19"
	FindCount      = "V20"
	FindStopped    = "V21"
	FindKeyframe   = "V22"
	FindLimit      = "V23"
	FindOverLimit  = "V24"
	FindBlock      = "V25"
	FindSeal       = "V26"
	FindSchedule   = "V27"
	FindArchived   = "V28"
	FindGroup      = "V29"
	FindDependency = "V30"
	FindKey        = "V31"
	FindRemoved    = "V32"
	FindSealGone   = "V33"
	FindCommand    = "V34"

	maxFindings = 1000 // then Verify stops looking
)

// Check is one of the checks of Verify.
type Check struct {
	Code  string // of its findings
	Finds string // what is wrong where it finds something
	Whole bool   // VerifySince leaves it out where an earlier check went before
}

// Checks are all checks of Verify, by code.
var Checks = [...]Check{
	{FindStructure, "the database's own integrity check fails", true},
	{FindGuard, "a table, index, trigger or view is missing or altered", false},
	{FindGap, "a position is missing", false},
	{FindClock, "time runs backwards along the positions", false},
	{FindDamaged, "an event cannot be read", false},
	{FindIllegal, "an event cannot follow those before it: sequence, transition, owner, token, " +
		"attempt", false},
	{FindBody, "a payload or result differs from its event, or is missing unexplained", false},
	{FindDiffers, "a row of `jobs` differs from its events", false},
	{FindMissing, "a job has no row in `jobs`", false},
	{FindExtra, "a row of `jobs` has no job", false},
	{FindQueue, "a row of `queues` differs from its events", false},
	{FindEarly, "a claim before `run_at`, or from a paused queue", false},
	{FindReclaim, "a reclaim before the lease's end, or with facts that are not the job's", false},
	{FindTooOften, "a retry beyond the maximum of attempts, or none before it", false},
	{FindForm, "an event in a form that no command writes", false},
	{FindRefused, "a refused write of a live claim, or one that is recorded twice", false},
	{FindPlace, "one boot id of worker processes on two hosts, or the presence of a boot id that no " +
		"process has", false},
	{FindUnfit, "a worker claims what it did not announce or in another name, or stops without a " +
		"start", false},
	{FindTime, "an end of a lease, or a future time, that the rules do not allow", false},
	{FindCount, "a wrong count of what was erased, rebuilt, imported or restored", false},
	{FindStopped, "a `stopped` or `survived` of a claim that was not lost, of another owner, for another " +
		"reason, or after its `stopped`", false},
	{FindKeyframe, "a keyframe is not what the events up to it add up to", false},
	{FindLimit, "a row of `limits` differs from its events", false},
	{FindOverLimit, "a claim above the limit or the rate in force, or one that is wrong about whether " +
		"there was a limit", false},
	{FindBlock, "events differ from the hash of their block, or a sealed block has no events: they were " +
		"changed after they were sealed", false},
	{FindSeal, "a seal differs from the events below it, or its checkpoint has another size, root, name " +
		"or signature", false},
	{FindSchedule, "a row of `timetable`, which is what schedules are kept in, differs from the " +
		"events", false},
	{FindArchived, "an `archived` whose range does not follow on the one before it, or whose root is " +
		"not that of the events; an `archive_described` of what was described already; a row of `segments` that " +
		"is not what these say", false},
	{FindGroup, "a row of `group_heads` differs from the queued jobs of its group, the last claim or " +
		"the live ones", false},
	{FindDependency, "a row of `deps` differs from the events, or an event says that a job need not " +
		"wait, or has to, and those before it say otherwise", false},
	{FindKey, "a job gets a key that is not for ever while another job has it, or one of a job that " +
		"left", false},
	{FindRemoved, "a `removed` of what was not archived, or a wrong count of what is left, of the keys " +
		"that were kept, or in the table `departed`", false},
	{FindSealGone, "the first seal is not the one that was recorded when sealing began: seals were " +
		"deleted", false},
	{FindCommand, "a job that carries its command in a queue whose jobs did not, or another job in one " +
		"whose jobs did", false},
}

// Verified is the result of Verify.
type Verified struct {
	Since    int64 // the events after this one were checked; 0: all
	Until    int64 // up to this one
	Events   int64
	Jobs     int64 // whose events these were
	Findings []Finding
	Stopped  bool // an event could not be folded; later ones were not checked
}
