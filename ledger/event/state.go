package event

import "fmt"

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
