package event

import (
	"fmt"
	"strings"
)

// Ending is which end of a job another job waits for. Its number is stored, so the numbers never change.
type Ending int

// The ends that a job may wait for.
const (
	OnSucceeded Ending = iota + 1 // success
	OnFailed                      // a failure for good
	OnFinished                    // any end: success, failure or cancellation
)

var endings = [...]string{OnSucceeded: "succeeded", OnFailed: "failed", OnFinished: "finished"}

// String returns the word of n, such as "finished".
func (n Ending) String() string {
	if n < OnSucceeded || n > OnFinished {
		return fmt.Sprintf("ending(%d)", int(n))
	}
	return endings[n]
}

// Meets reports whether a job that is in this state has ended as n says.
func (n Ending) Meets(s State) bool {
	switch n {
	case OnSucceeded:
		return s == SucceededState
	case OnFailed:
		return s == FailedState
	case OnFinished:
		return s.Final()
	}
	return false
}

// FormatReference returns the text of a job that is waited for: its id, and the end unless that is success.
func FormatReference(id JobID, n Ending) string {
	if n == OnSucceeded {
		return string(id)
	}
	return string(id) + ":" + n.String()
}

// ParseReference reads what FormatReference wrote. It returns an error for any other text.
func ParseReference(text string) (id JobID, n Ending, err error) {
	job, word, given := strings.Cut(text, ":")
	n = OnSucceeded
	switch {
	case given && word == OnFailed.String():
		n = OnFailed
	case given && word == OnFinished.String():
		n = OnFinished
	case given:
		err = fmt.Errorf("%q is neither failed nor finished", word)
	}
	if !isULID(job) {
		err = fmt.Errorf("%.60q is not the id of a job", job)
	}
	return JobID(job), n, err
}
