// Package work is what `jobledger serve` does for producers and workers: enqueue, claim, heartbeat, and the
// ends of claims. Its routes are for bearer tokens and Unix sockets, never for a browser's session.
//
//	room := work.New(work.Config{Service: service, Now: time.Now, Closing: closing})
//	d.Add(room.Routes()...) // the door checks the right, the room the queues
//
// A claim that waits costs no read of its own: one hub looks for all that wait, once for each kind of job
// that is asked for, when the ledger changes or a job becomes due.
//
// Files in reading order: room.go (routes and limits), body.go (reading requests), enqueue.go, claims.go (a
// turn of a worker), wait.go (until a job is ready), hub.go (for all that wait), turn.go (requests that are
// sent again), owner.go (outcomes, heartbeats, what a process holds), process.go (workers
// that come and go), answer.go (JSON).
//
// Held by TestRequestsOfProducersAndWorkersAreChecked, TestClaimWaitsUntilAJobIsReady,
// TestTokenSeesNothingOfOtherQueues and TestWorkersOverHTTPDoAllJobs of the server.
package work
