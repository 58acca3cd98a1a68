package event

import (
	"fmt"
	"slices"
)

// Kind says what happened. Its number is stored, so the numbers are for ever (I9).
type Kind int

// The kinds of events. The numbers are those of the table kinds.
const (
	KindEnqueued Kind = iota + 1
	KindClaimed
	KindHeartbeat
	KindSucceeded
	KindFailed
	KindReleased
	KindReclaimed
	KindCancelled
	KindRetried
	KindRescheduled
	KindRefused
	KindErased
	KindQueuePaused
	KindQueueResumed
	KindWorkerStarted
	KindWorkerStopped
	KindRebuilt
	KindRestored
	KindImported
	KindSealing
	KindArchived
)

// The numbers of the kinds of schedules and limits, and of the kinds added after them.
const (
	KindQueueLimited Kind = iota + 22
	KindScheduleSet
	KindSchedulePaused
	KindScheduleResumed
	KindScheduleRemoved
	KindScheduleSkipped
	KindUnblocked
	KindStopped
	KindTakenOver
	KindQueueDefaults
	KindReplaced
	KindRemoved
	KindArchivePolicy
	KindSurvived
	KindArchiveDescribed
	KindEdited
)

// facts are what is true of every event of a kind. No other list of kinds says so: code asks for a fact, and
// SQL too, see [SQL].
type facts uint32

const (
	ofJob        facts = 1 << iota // it concerns a job
	hasSeq                         // it changes the job's row, so it has a seq and states
	ofClaim                        // it concerns a claim
	mayBeOfClaim                   // it may concern one
	endsClaim                      // it ends the claim that it concerns
	keepsClaim                     // its job stays claimed, by the same worker
	signOfLife                     // its worker's process lived then
	operator                       // operators do that; some of it follows from other jobs too
	process                        // the process of its worker (boot, host, pid, version) is shown in data
	token                          // it is stored with its token
	runsAtOnce                     // without a run_at in data, its job is to run at the event's at
	payload                        // a payload may be stored next to it
	result                         // a result may be
	afterClaim                     // the claim that it concerns was over

	moves = ofJob | hasSeq
)

// kinds is the one registry: the word of each kind, an empty body to decode into, and its facts. A number
// without a body is not a kind.
var kinds = [...]struct {
	word  string
	body  func() Body
	facts facts
}{
	KindEnqueued:        {"enqueued", body[Enqueued], moves | runsAtOnce | payload},
	KindClaimed:         {"claimed", body[Claimed], moves | ofClaim | signOfLife | token | process},
	KindHeartbeat:       {"heartbeat", body[Heartbeat], moves | ofClaim | keepsClaim | signOfLife},
	KindSucceeded:       {"succeeded", body[Succeeded], moves | ofClaim | endsClaim | signOfLife | result},
	KindFailed:          {"failed", body[Failed], moves | ofClaim | endsClaim | signOfLife},
	KindReleased:        {"released", body[Released], moves | ofClaim | endsClaim | signOfLife},
	KindReclaimed:       {"reclaimed", body[Reclaimed], moves | ofClaim | endsClaim},
	KindCancelled:       {"cancelled", body[Cancelled], moves | mayBeOfClaim | endsClaim | operator},
	KindRetried:         {"retried", body[Retried], moves | operator | runsAtOnce},
	KindRescheduled:     {"rescheduled", body[Rescheduled], moves | operator},
	KindRefused:         {"refused", body[Refused], ofJob | mayBeOfClaim | signOfLife | token},
	KindErased:          {"erased", body[Erased], ofJob | operator},
	KindQueuePaused:     {"queue_paused", body[QueuePaused], operator},
	KindQueueResumed:    {"queue_resumed", body[QueueResumed], operator},
	KindWorkerStarted:   {"worker_started", body[WorkerStarted], signOfLife | process},
	KindWorkerStopped:   {"worker_stopped", body[WorkerStopped], process},
	KindRebuilt:         {"rebuilt", body[Rebuilt], operator},
	KindRestored:        {"restored", body[Restored], operator},
	KindImported:        {"imported", body[Imported], 0},
	KindSealing:         {"sealing", body[Sealing], 0},
	KindArchived:        {"archived", body[Archived], 0},
	KindQueueLimited:    {"queue_limited", body[QueueLimited], operator},
	KindScheduleSet:     {"schedule_set", body[ScheduleSet], operator},
	KindSchedulePaused:  {"schedule_paused", body[SchedulePaused], operator},
	KindScheduleResumed: {"schedule_resumed", body[ScheduleResumed], operator},
	KindScheduleRemoved: {"schedule_removed", body[ScheduleRemoved], operator},
	KindScheduleSkipped: {"schedule_skipped", body[ScheduleSkipped], 0},
	KindUnblocked:       {"unblocked", body[Unblocked], moves},
	KindStopped:         {"stopped", body[Stopped], ofJob | ofClaim | signOfLife | token | afterClaim},
	KindTakenOver:       {"taken_over", body[TakenOver], moves | ofClaim | keepsClaim | signOfLife | process},
	KindQueueDefaults:   {"queue_defaults", body[QueueDefaults], operator},
	KindReplaced:        {"replaced", body[Replaced], moves | payload},
	KindRemoved:         {"removed", body[Removed], 0},
	KindArchivePolicy:   {"archive_policy", body[ArchivePolicy], 0},
	KindSurvived:        {"survived", body[Survived], ofJob | ofClaim | signOfLife | afterClaim},

	KindArchiveDescribed: {"archive_described", body[ArchiveDescribed], 0},
	KindEdited:           {"edited", body[Edited], moves | operator},
}

func body[T any, B interface {
	*T
	Body
}]() Body {
	return B(new(T))
}

// Kinds returns every kind in the order of its number.
func Kinds() []Kind {
	all := make([]Kind, 0, len(kinds)-1)
	for k := range kinds {
		if Kind(k).known() {
			all = append(all, Kind(k))
		}
	}
	return all
}

// String returns the word of k, such as "claimed".
func (k Kind) String() string {
	if !k.known() {
		return fmt.Sprintf("kind(%d)", int(k))
	}
	return kinds[k].word
}

func (k Kind) known() bool { return k > 0 && int(k) < len(kinds) && kinds[k].body != nil }

// ParseKind returns the kind with this word; ErrUnknownKind if there is none.
func ParseKind(word string) (Kind, error) {
	for k := range kinds {
		if Kind(k).known() && kinds[k].word == word {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("%w: %q", ErrUnknownKind, word)
}

// is reports whether one of these facts is true of k.
func (k Kind) is(f facts) bool { return k.known() && kinds[k].facts&f != 0 }

// KindsThat returns the kinds for which one of the methods of Kind reports true, in the order of their
// number.
func KindsThat(is func(Kind) bool) []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return !is(k) })
}

// OfJob reports whether events of this kind concern a job.
func (k Kind) OfJob() bool { return k.is(ofJob) }

// HasSeq reports whether events of this kind change a job's row, so that they have a seq and states.
func (k Kind) HasSeq() bool { return k.is(hasSeq) }

// EndsClaim reports whether an event of this kind ends the claim that it concerns.
func (k Kind) EndsClaim() bool { return k.is(endsClaim) }

// KeepsClaim reports whether the job of an event of this kind stays claimed, by the same worker.
func (k Kind) KeepsClaim() bool { return k.is(keepsClaim) }

// IsSignOfLife reports whether an event of this kind shows that its worker's process lived then: it announced
// its start, claimed, or wrote about a claim, or tried to. A reclaim does not show that.
func (k Kind) IsSignOfLife() bool { return k.is(signOfLife) }

// OfOperator reports whether events of this kind are what operators do. Some follow from other jobs too.
func (k Kind) OfOperator() bool { return k.is(operator) }

// ShowsProcess reports whether the event's worker is shown with its process (boot, host, pid, version) in
// data.
func (k Kind) ShowsProcess() bool { return k.is(process) }

// StoresToken reports whether events of this kind are stored with their token.
func (k Kind) StoresToken() bool { return k.is(token) }

// TokenOfClaim reports whether the token of an event of this kind is that of its claim, so that readers look
// it up there. A survived has no token: it is of the last claim.
func (k Kind) TokenOfClaim() bool { return !k.is(token | afterClaim) }

// RunsAtOnce reports whether the job of such an event without a run_at is to run at the event's at.
func (k Kind) RunsAtOnce() bool { return k.is(runsAtOnce) }

// OfAllJobs reports whether events of this kind may concern all jobs: they are not known to concern one job
// or one process.
func (k Kind) OfAllJobs() bool { return !k.is(ofJob | process) }

// HasBody reports whether a payload or a result may be stored next to an event of this kind.
func (k Kind) HasBody() bool { return k.is(payload | result) }

// AfterClaim reports whether events of this kind concern a command whose claim was over.
func (k Kind) AfterClaim() bool { return k.is(afterClaim) }
