package claims

// Statements returns the statements of a claim, by purpose.
func Statements() map[string]string {
	return map[string]string{"lanes": lanesWithJobs, "heads": laneHead, "rest": laneRest, "since": queuedSince}
}
