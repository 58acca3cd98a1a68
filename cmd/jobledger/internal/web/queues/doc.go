// Package queues answers people who ask about queues: a list of them, a page of each, and the forms that set
// their limits and defaults, pause and resume them.
//
//	p := &queues.Pages{Site: site, Acts: acts}
//	d.Add(p.Routes()...)
//
// Files in reading order: pages.go (routes), course.go (how a queue goes), list.go and queue.go (one page
// each), bounds.go (what is set), limits.go and defaults.go (forms that set
// it), effects.go (what they would do).
//
// Held by TestQueuesShowWhatIsSet and TestSettingForms of the program.
package queues
