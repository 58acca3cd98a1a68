// Package crontab reads a crontab as cronie reads it, names its lines, and writes it again with lines that
// are comments for cron because jobledger has taken them over. It is pure: it reads and writes text.
//
//	lines, err := crontab.Read(text, false)
//	crontab.Name(lines, taken)         // a name for each that has none
//	text = crontab.Take(text, ...)     // comments, for cron
//	text = crontab.Finish(text)        // the same, once their schedules tick
//
// When a line runs is the business of package cron: there is no second reader of the five fields.
//
// The files: read.go has lines and settings, line.go what is in a line, take.go the lines that were taken
// over, name.go names.
//
// Held by TestCrontabs, TestTicksAreThoseOfCron and FuzzRead.
package crontab
