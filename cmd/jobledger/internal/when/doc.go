// Package when reads times and durations as people type them: 15:04, -2h, pos:42, 1d12h. It is pure: now
// is an argument, and errors say only what is wrong with the text. Package cli adds the name of the flag.
//
// Files in reading order: parse_when.go has [ParseWhen], duration.go has [ParseDuration], backoff.go has
// [ParseBackoff]; named_value.go reads
// the value of a named field or flag.
//
// Held by TestParseWhen, TestParseWhenReadsFormattedTimes, TestDurationWithin and TestParseBackoff.
package when
