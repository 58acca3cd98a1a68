package main

// knownDifferences are the answers that are wrong today.
var knownDifferences = []knownDifference{
	{"list*", "*", "archive", "jobs that have left since are missing as of a moment", false},
	{"queues", "*", "archive", "a queue of which all jobs have left is missing as of a moment", true},
	{"failures from pos:N", "api", "*", "a window from pos:N leaves the event N out", false},
	{"acts from pos:N", "api", "*", "a window from pos:N leaves the event N out", false},
}
