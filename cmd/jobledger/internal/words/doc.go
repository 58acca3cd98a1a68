// Package words puts values of the ledger into words, JSON and terminal text. It reads nothing, prints
// nothing and knows no command line, so every package below cmd/jobledger may use it. Tables and JSON of
// whole things are in package print; why a job is in its state is in package state.
//
// Files in reading order:
//   - text.go: escaping, padding, wrapping and the colors of a terminal; payloads and error details
//   - table.go: a [Table], laid out for the width of a terminal
//   - time.go: times, durations and distances
//   - describe.go: what an event records, in one line ([Describe])
//   - settings.go: limits, defaults and policies, in words
//   - labels.go: kinds, states, processes and counts, in words
//   - jobjson.go: a job as JSON ([ToJSON])
//
// Held by TestCountsAgreeWithTheirNouns, TestEscape and TestAgeOrDate here, and by
// TestTerminalOutputIsEscaped of the program.
package words
