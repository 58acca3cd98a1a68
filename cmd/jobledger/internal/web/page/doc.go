// Package page answers people: each page is HTML that needs no script, about one moment of the ledger.
//
//	p := &page.Pages{API: a, Name: "orders.db"}
//	d.Add(p.Routes()...)
//
// Files in reading order: pages.go (routes, templates and assets), frame.go, frame_marks.go, fixed.go,
// times.go, span.go (what pages share: the moment and the window that they show), login.go, overview.go,
// course.go, ledgers.go, jobs.go, counted.go, names.go, job.go, joblogs.go, events.go, kinds.go, lanes.go,
// failures.go, workers.go, queue.go, diff.go, incident.go, integrity.go, apidoc.go (one page each), acts.go,
// sameas.go (what the forms do).
//
// Held by TestLinked here, and by TestPagesShowWhatTheViewsHave and TestFormsNeedNoScript of the program.
package page
