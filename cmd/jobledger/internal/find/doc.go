// Package find is about what a user asks for: which job, which jobs, which events, and how many at a time.
// Flags of the command line and parameters over HTTP are the same values by the same names. Its errors are
// [query.InputError].
//
//   - A job is named by its id, the beginning or the end of that, by its key, or as the newest of a queue:
//     ref.go has [Ref], find_job.go asks the ledger, id_left.go whether the job has left it, and
//     queue_unused.go finds queues that may be misspelt.
//   - Jobs and events are selected by filters: filter.go has [Jobs], filter_terms.go the terms of a search,
//     filter_events.go [Events]. [Window] is for all.
//   - Long lists are read page by page, each on a snapshot of its own: pages.go has [Reader], search.go the
//     pages of a search. A consumer that takes a list slowly, such as a pager, must not hold a snapshot
//     open: the -wal file of an SQLite ledger would grow meanwhile.
//
// Held by TestRefFind and TestUnusedQueuesNamesTheNearest here, and by TestFindJobs,
// TestListingsSpanPages, TestUnreadOutputHoldsNoSnapshot and TestScripts/listfind of the program.
package find
