// Package joblines reads jobs from JSON lines, the input of 'jobledger enqueue --jsonl': an object a line,
// with the keys of [Keys]. Its errors name the line and have an exit code of package cli. With Plain a line
// is a payload, as for 'jobledger enqueue --lines'.
//
//	lines := joblines.Reader{Defaults: commands.Enqueue{Queue: "mail"}, Now: time.Now()}
//	total, err := lines.Check(ctx, file, service, progress) // before anything is written
//	for chunk, err := range lines.Chunks(file) { // as many jobs as one transaction takes
//
// It enqueues nothing. read.go reads lines and says what is none, and check.go compares lines with
// each other and with a ledger.
//
// Held by TestScripts/jsonl, TestScripts/badjsonl, TestDelayUsesLedgerClock and TestKilledBetweenChunks of
// the program.
package joblines
