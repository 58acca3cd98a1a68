// Package export writes a window of the history for other programs: as JSON lines, CSV, a trace or spans.
//
// Each format is a function that reads a store and writes to an io.Writer:
//
//	window := export.Window{After: 4710, Until: 5200} // the events 4711 to 5200
//	err := export.Trace(ctx, store, window, w)
//
// The functions read the ledger in short transactions, so writers are not held up. They print nothing else,
// parse no flags, and leave it to the caller to turn times into a [Window].
//
// [Lines] selects events. [CSV] and [Trace] select claims: those that were live at some time within the
// window; [OTLP] selects those that ended there. A claim may have begun long before it, so these first read
// the events of the jobs that were open when it began. Which jobs these are, the table jobs says.
//
// Files in reading order:
//
//   - window.go: [Window], and the walks over events and claims
//   - jsonl.go: [Lines], which 'jobledger import' reads back
//   - csv.go: [CSV]
//   - trace.go: [Trace], for https://ui.perfetto.dev
//   - otlp.go, otlp_span.go: [OTLP], for collectors of OpenTelemetry
//   - formats.go: their names
//
// Held by TestLinesOfAWindow, TestEachClaimFromMiddle, TestTraceForPerfetto and TestSpansOfTheBadNight.
package export
