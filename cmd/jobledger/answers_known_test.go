package main

// knownDifferences are the answers that are wrong today.
var knownDifferences = []knownDifference{
	{"queues", "*", "archive", "a queue of which all jobs have left is missing as of a moment", true},
	{"failures from pos:N", "api", "*", "a window from pos:N leaves the event N out", false},
	{"acts from pos:N", "api", "*", "a window from pos:N leaves the event N out", false},
}
