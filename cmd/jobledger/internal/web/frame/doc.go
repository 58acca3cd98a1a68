// Package frame is what all pages for people have in common: the frame around each, the moment, the
// window and the zone that it is about, the login, how HTML is made, and the files that pages load.
//
//	s := &frame.Site{API: a, Name: "orders.db"}
//	d.Add(s.FrameRoutes()...)
//
// Files in reading order: site.go (routes and parameters), frame.go, marks.go (the frame of a page),
// fixed.go, times.go, plain.go, span.go (moments, zones, windows), login.go, kinds.go, setting.go (forms),
// happened.go, charts.go (what several pages show), look.go (templates and assets).
//
// Held by TestLinked here, and by TestPagesShowWhatTheViewsHave and TestOneZoneEverywhere of the program.
package frame
