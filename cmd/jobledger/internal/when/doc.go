// Package when reads times and durations as people type them: tue 02:00, -2h, pos:42, 1d12h. It is pure
// but for the name of this machine's zone: now is an argument, and errors say only what is wrong with the
// text. Package cli adds the name of the flag.
//
// Files in reading order: spoken.go has [Spoken], for fields and flags that people fill in; parse_when.go has
// [ParseWhen], which takes nothing that can mean two moments, for addresses, HTTP and JSONL; zone.go names
// zones, and knows the hours that clocks skip or show twice; duration.go has [ParseDuration], backoff.go
// has [ParseBackoff]; named_value.go reads the value of a named field or flag.
//
// Held by TestSpoken, TestInUTC, TestParseWhen, TestParseWhenReadsFormattedTimes, TestDurationWithin and
// TestParseBackoff.
package when
