// Package incident gathers what a post-mortem needs to know about a window of the ledger, and writes it as a
// report.
//
//	report, err := incident.Investigate(ctx, store, window, time.Now())
//	err = report.WriteMarkdown(w)
//	err = report.Depth.WriteSVG(chart) // the report shows it as depth.svg
//
// A [Report] is data: which workers lost jobs, what was taken back, refused and given up, failures by cause,
// what operators did, the depth of the queues minute by minute, and what is wrong with the ledger. Its memory
// grows with what went wrong, not with what went well, and it prints the first rows of each table.
//
// [WriteFolder] makes the folder of 'jobledger incident': the report, and the events, the attempts and a
// trace, which package export writes. The package opens no ledger.
//
// Files in reading order:
//
//   - report.go: [Report], the data
//   - investigate.go: [Investigate], which asks package projection/query for it
//   - chart.go: [Depth], the jobs queued and held minute by minute, and its drawing
//   - markdown.go: [Report.WriteMarkdown]
//   - folder.go: [WriteFolder]
//
// Held by TestInvestigateBadNight, TestInvestigateFromTheMiddle and TestReportQuotesText.
package incident
