// Package act carries out what an operator asks for over HTTP, on one job, on many, or on a queue.
//
//	a := &act.Acts{API: api, Service: service}
//	job, err := a.Job(ctx, "cancel", id, act.Request{Reason: "sent twice", Seqs: []int64{3}})
//	d.Add(a.Routes()...)
//
// Rights are checked here, where the command is called, for the pages and the API alike. The actor of the
// events is the caller's.
//
// Files in reading order: act.go (one job, one queue), bulk.go (many jobs), chosen.go (those that
// are named), settings.go (limits and defaults of a queue), routes.go and settings_routes.go (as
// JSON).
//
// Held by TestActsOnOneJob, TestActsOnManyJobs, TestActsOnChosenJobs, TestSettingsOfQueue and
// TestFormsNeedNoScript of the program.
package act
