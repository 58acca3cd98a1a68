package worker

import (
	"regexp"

	"jobledger/projection"
)

// TraceTag is the tag of a job that has its trace, as the header traceparent of W3C Trace Context does. A
// command gets it as TRACEPARENT.
const TraceTag = "traceparent"

var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// IsTraceparent reports whether text has the form of a traceparent.
func IsTraceparent(text string) bool { return traceparent.MatchString(text) }

// traceOf is the environment variable with the trace of job, if it has one.
func traceOf(job projection.Job) []string {
	if trace := job.Tags[TraceTag]; IsTraceparent(trace) {
		return []string{"TRACEPARENT=" + trace}
	}
	return nil
}
