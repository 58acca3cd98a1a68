package event

import (
	"slices"
	"strings"
)

// FormArgv is the form of a payload that is a command, as package commands/argv reads and writes it
// (Enqueued.Form, ScheduleSet.Form).
const FormArgv = "argv"

// The labels that the program gives to jobs and to workers itself. They begin with LabelReserved, and a
// person may not ask for such a label.
const (
	LabelReserved = "jl:"
	LabelArgv     = "jl:argv" // of each job of FormArgv, so that only a worker that runs such jobs takes it
	LabelRun      = "jl:run." // before the name of the run that the job waits for, and no other worker
)

// RunOf returns the name of the run that a job with these labels waits for; "": of none.
func RunOf(requires []string) string {
	for _, label := range requires {
		if name, ok := strings.CutPrefix(label, LabelRun); ok {
			return name
		}
	}
	return ""
}

// WithoutRun returns the labels of a job that waits for no run.
func WithoutRun(requires []string) []string {
	ofRun := func(label string) bool { return strings.HasPrefix(label, LabelRun) }
	return slices.DeleteFunc(slices.Clone(requires), ofRun)
}
