// Package event is the vocabulary of the ledger: what can happen to a job, a queue, a worker process and the
// ledger itself, and how each fact is written. It is pure: no database, no clock, no other package of this
// module. Package ledger stores events; package projection says what they mean.
//
// An [Event] has an envelope (which job, when, who, which claim, from which state to which) and a [Body], one
// type per [Kind]. Kinds, states and field names are for ever: they are added to, never renamed, renumbered
// or reused.
//
//	e := event.Event{Pos: 1, Job: id, Seq: 1, At: now, Actor: "cli:ada@desk", To: event.Queued,
//		Body: &event.Enqueued{Queue: "mail", RunAt: now, MaxAttempts: 5}}
//	line, err := json.Marshal(e) // the public form, as `jobledger events --json` prints it
//
// A body has two forms of the same fields. The stored form is compact: times are integer microseconds, null,
// zero and implicit defaults are left out ([AppendStored], [OmitDefaults]). The public form is for people and
// exports: times are RFC 3339 in UTC and every field is printed ([Event.MarshalJSON]). [Decode] reads both.
//
// The files in reading order:
//
//	event.go        Event, JobID, Worker
//	kinds.go        the registry of kinds; state.go the states of a job
//	body.go         one type per kind of events of jobs; body_ledger.go those of no job
//	fields.go       the JSON fields of each
//	codec.go        writing and reading the fields of a body
//	defaults.go     implicit defaults, which are not stored
//	rules.go        what the tags of fields say
//	sql.go          kinds and states by name in SQL
//	json.go         an event as one JSON object
//	export_line.go  Line: an event with the payload or result that is stored next to it
//	validate.go     what an event of each kind must and must not have
//	time.go         how a time is written
//
// Package ledger/jsonscan has the JSON scanner.
//
// Held by TestBodiesRoundTrip, TestPublicFormEqualsGolden and TestLeavesNeverChange here, and by
// TestKindNumbersNeverChange of package ledger.
package event
