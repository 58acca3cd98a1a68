// Package page answers people who ask what goes on: each page is HTML that needs no script, about one
// moment of the ledger.
//
//	p := &page.Pages{Site: site, Acts: acts}
//	d.Add(p.Routes()...)
//
// Files in reading order: pages.go (routes), overview.go, course.go, ledgers.go, jobs.go, counted.go,
// names.go, job.go, joblogs.go, failures.go, workers.go, integrity.go, books.go,
// apidoc.go (one page each), acts.go, sameas.go (what the forms do).
//
// Held by TestPagesShowWhatTheViewsHave and TestFormsNeedNoScript of the program.
package page
