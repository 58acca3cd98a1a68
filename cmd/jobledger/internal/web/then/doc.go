// Package then answers people who ask what happened: each page is about a window of the ledger, or about
// two moments of it.
//
//	p := &then.Pages{Site: site}
//	d.Add(p.Routes()...)
//
// Files in reading order: pages.go (routes), lanes.go, events.go, diff.go, incident.go (one page each).
//
// Held by TestPagesShowWhatTheViewsHave of the program.
package then
