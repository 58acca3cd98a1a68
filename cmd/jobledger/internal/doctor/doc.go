// Package doctor examines the surroundings of a ledger: files, locks, clocks, workers, servers.
//
//	report, err := doctor.Examine(ctx, "jobs.db", doctor.Options{})
//	for _, f := range report.Findings {
//		fmt.Println(f.Code, f.Severity, f.Seen, f.Remedy)
//	}
//
// [Examine] reads only. It makes no file and may run at any time, on a damaged ledger too. An error means
// that there is nothing to examine; everything else is a [Finding]. The package prints nothing and parses no
// flags.
//
// It does not check the history and the tables that follow from it: package audit does.
//
// Files in reading order:
//
//   - doctor.go: [Examine], [Finding] and the codes
//   - files.go: what the file system and the kernel know of a ledger in a file; files_*.go: owners and
//     permissions
//   - content.go: the checks that read tables, of both engines
//   - wal.go: -wal and -journal files that belong to another ledger or grow
//   - service.go: the units of the packages, and processes whose program was replaced
//   - server.go: what a PostgreSQL server says of itself
//
// Held by TestExamineHealthyLedger, TestExamineDamagedLedger and TestServiceFindings here, and by
// TestDoctorFindings of the program.
package doctor
