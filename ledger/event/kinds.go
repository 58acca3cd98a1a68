package event

import (
	"fmt"
	"strconv"
	"strings"
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

// The numbers of schedules and limits, and those that follow them.
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
)

// kinds is the one registry: the word of each kind and an empty body to decode into. A number without a
// body is no kind.
var kinds = [...]struct {
	word string
	body func() Body
}{
	KindEnqueued:      {"enqueued", func() Body { return new(Enqueued) }},
	KindClaimed:       {"claimed", func() Body { return new(Claimed) }},
	KindHeartbeat:     {"heartbeat", func() Body { return new(Heartbeat) }},
	KindSucceeded:     {"succeeded", func() Body { return new(Succeeded) }},
	KindFailed:        {"failed", func() Body { return new(Failed) }},
	KindReleased:      {"released", func() Body { return new(Released) }},
	KindReclaimed:     {"reclaimed", func() Body { return new(Reclaimed) }},
	KindCancelled:     {"cancelled", func() Body { return new(Cancelled) }},
	KindRetried:       {"retried", func() Body { return new(Retried) }},
	KindRescheduled:   {"rescheduled", func() Body { return new(Rescheduled) }},
	KindRefused:       {"refused", func() Body { return new(Refused) }},
	KindErased:        {"erased", func() Body { return new(Erased) }},
	KindQueuePaused:   {"queue_paused", func() Body { return new(QueuePaused) }},
	KindQueueResumed:  {"queue_resumed", func() Body { return new(QueueResumed) }},
	KindWorkerStarted: {"worker_started", func() Body { return new(WorkerStarted) }},
	KindWorkerStopped: {"worker_stopped", func() Body { return new(WorkerStopped) }},
	KindRebuilt:       {"rebuilt", func() Body { return new(Rebuilt) }},
	KindRestored:      {"restored", func() Body { return new(Restored) }},
	KindImported:      {"imported", func() Body { return new(Imported) }},
	KindSealing:       {"sealing", func() Body { return new(Sealing) }},
	KindArchived:      {"archived", func() Body { return new(Archived) }},
	KindQueueLimited:  {"queue_limited", func() Body { return new(QueueLimited) }},

	KindScheduleSet:     {"schedule_set", func() Body { return new(ScheduleSet) }},
	KindSchedulePaused:  {"schedule_paused", func() Body { return new(SchedulePaused) }},
	KindScheduleResumed: {"schedule_resumed", func() Body { return new(ScheduleResumed) }},
	KindScheduleRemoved: {"schedule_removed", func() Body { return new(ScheduleRemoved) }},
	KindScheduleSkipped: {"schedule_skipped", func() Body { return new(ScheduleSkipped) }},

	KindUnblocked: {"unblocked", func() Body { return new(Unblocked) }},
	KindStopped:   {"stopped", func() Body { return new(Stopped) }},
	KindTakenOver: {"taken_over", func() Body { return new(TakenOver) }},

	KindQueueDefaults: {"queue_defaults", func() Body { return new(QueueDefaults) }},
	KindReplaced:      {"replaced", func() Body { return new(Replaced) }},
	KindRemoved:       {"removed", func() Body { return new(Removed) }},
	KindArchivePolicy: {"archive_policy", func() Body { return new(ArchivePolicy) }},
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

// EndsClaim reports whether an event of this kind ends the claim that it concerns.
func (k Kind) EndsClaim() bool { return k >= KindSucceeded && k <= KindCancelled }

// IsSignOfLife reports whether an event of this kind shows that its worker's process lived then: it announced
// its start, claimed, or wrote about a claim, or tried to. A reclaim does not show that.
func (k Kind) IsSignOfLife() bool {
	switch k {
	case KindClaimed, KindHeartbeat, KindSucceeded, KindFailed, KindReleased, KindRefused, KindWorkerStarted,
		KindStopped, KindTakenOver:
		return true
	}
	return false
}

// KindNumbers returns the numbers of the kinds for which is reports true, as a list for SQL: "2, 3, 4".
func KindNumbers(is func(Kind) bool) string {
	var numbers []string
	for _, k := range Kinds() {
		if is(k) {
			numbers = append(numbers, strconv.Itoa(int(k)))
		}
	}
	return strings.Join(numbers, ", ")
}

// showsProcess reports whether the event's worker is shown with its process (boot, host, pid, version) in
// data.
func (k Kind) showsProcess() bool {
	return k == KindClaimed || k == KindTakenOver || k == KindWorkerStarted || k == KindWorkerStopped
}

// OfJob reports whether events of this kind concern a job.
func (k Kind) OfJob() bool {
	return k <= KindErased || k >= KindUnblocked && k <= KindTakenOver || k == KindReplaced
}

// HasSeq reports whether events of this kind change a job's row, so that they have a seq and states.
func (k Kind) HasSeq() bool {
	return k < KindRefused || k == KindUnblocked || k == KindTakenOver || k == KindReplaced
}

// StoresToken reports whether events of this kind are stored with their token. Of other events of a claim
// it is looked up.
func (k Kind) StoresToken() bool { return k == KindClaimed || k == KindRefused || k == KindStopped }

// State is the state of a job. Its number is stored, so the numbers never change (I9).
type State int

// The states of a job; zero is "no state", as before the first event. The numbers are those of the table
// states.
const (
	Queued State = iota + 1
	ClaimedState
	Running
	SucceededState
	FailedState
	CancelledState
	Blocked // it waits for other jobs, or is held
)

var states = [...]string{Queued: "queued", ClaimedState: "claimed", Running: "running",
	SucceededState: "succeeded", FailedState: "failed", CancelledState: "cancelled",
	Blocked: "blocked"}

// States returns every state in the order of its number.
func States() []State {
	return []State{Queued, ClaimedState, Running, SucceededState, FailedState, CancelledState,
		Blocked}
}

// String returns the word of s, such as "queued"; the empty string for no state.
func (s State) String() string {
	if s < 0 || int(s) >= len(states) {
		return fmt.Sprintf("state(%d)", int(s))
	}
	return states[s]
}

// ParseState returns the state with this word.
func ParseState(word string) (State, error) {
	for s, w := range states {
		if s > 0 && w == word {
			return State(s), nil
		}
	}
	return 0, fmt.Errorf(
		"ledger: no state %q; the states are queued, claimed, running, succeeded, failed, cancelled, "+
			"blocked", word)
}

// Held reports whether a job in this state has an owner.
func (s State) Held() bool { return s == ClaimedState || s == Running }

// Final reports whether a job in this state has ended (an operator's retry may still queue it again).
func (s State) Final() bool { return s >= SucceededState && s <= CancelledState }
