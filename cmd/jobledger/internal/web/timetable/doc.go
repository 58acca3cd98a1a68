// Package timetable answers about schedules: programs by the API, and people by pages that show when each
// ticks next, what became of its last ticks, and what can be done to it.
//
//	p := &timetable.Pages{Site: site, Acts: acts}
//	d.Add(p.Routes()...)
//
// Files in reading order: routes.go (routes, and the answers of the API), list.go (all schedules), one.go
// (one of them), draw.go (ticks as pictures), acts.go (what its forms do), form.go (the form
// that sets one).
//
// Held by TestSchedulePages, TestScheduleTicks, TestScheduleActs and TestScheduleForm of the program.
package timetable
