package engine

// Topic says what processes are notified of. Topics can be combined.
type Topic uint8

// The topics.
const (
	Claimable Topic = 1 << iota // a job may have become claimable
	Ended                       // a claim was cancelled or reclaimed
	Inbox                       // rows were committed into the inbox
	AnyTopic  = Claimable | Ended | Inbox
)
