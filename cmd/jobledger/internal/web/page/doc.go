// Package page answers people: each page is HTML that needs no script, about one moment of the ledger.
//
//	p := &page.Pages{API: a, Tables: tables, Name: "orders.db"}
//	d.Add(p.Routes()...)
//
// Files in reading order: pages.go (routes, templates and assets), frame.go (what pages share, and the moment
// that they show), login.go, overview.go, jobs.go, job.go, bar.go, events.go (one page each, and a picture).
package page
