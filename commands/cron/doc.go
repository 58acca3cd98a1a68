// Package cron says when a schedule ticks: cron's five fields in a time zone, or every so often. It is pure:
// it reads no clock, and two processes with the same time zone database agree.
//
//	s, err := cron.Parse("0 2 * * mon-fri", zone)
//	next := s.Next(after) // the first tick after that moment
//
// The fields are minute (0–59), hour (0–23), day of the month (1–31), month (1–12 or jan–dec) and day of
// the week (0–7 or sun–sat; 0 and 7 are Sunday). A field is a list of numbers, ranges a-b, and steps a-b/n or
// */n. If both days are restricted, a day that matches either is one, as POSIX says; if one of the two
// fields begins with *, both must match. @hourly, @daily (@midnight), @weekly, @monthly and @yearly
// (@annually) are short for the obvious fields.
//
// In the two nights of a year in which clocks change, the rule of Vixie cron and cronie holds. If neither the
// minute nor the hour begins with *, the fields mean the time on the wall: a time that was skipped ticks at
// the first moment after the gap, one that comes twice ticks the first time. If one of the two begins with *,
// real minutes count: both of the doubled ones, none of the skipped.
//
// The files: parse.go reads an expression, next.go finds ticks, zone.go knows when clocks change.
//
// Held by TestNextEqualsMinuteByMinute, TestNextOnNightsOfTheClock and TestParseRefuses. This package is
// not part of the Go API, and may change in any release.
package cron
