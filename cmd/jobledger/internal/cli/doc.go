// Package cli is the frame of the program: it parses the command line, runs the verb that it names, and
// prints. It knows no verb; main gives it the list.
//
// A verb is a value, and [Program.Run] does the rest:
//
//	hello := cli.Verb{
//		Name: "hello", Group: cli.GroupSee, Usage: "greet",
//		Examples: []cli.Example{{"jobledger hello", "prints hello"}},
//		Run:      func(*cli.Context) error { return p.PrintLine("hello") },
//	}
//	os.Exit(p.Run(ctx, os.Args[1:], []cli.Verb{hello}))
//
// Files in reading order:
//   - app.go, verb.go: [Program], [Verb], and the way from a command line to an exit code
//   - args.go, flags.go: the command line, and kinds of flags
//   - when.go: flags for times and durations
//   - errors.go: exit codes and hints, those of package fault
//   - open.go, place.go, address.go, archive.go: the ledger of --db, jobs by the beginning of their id,
//     folders and addresses
//   - print.go, progress.go, watch.go: output
//   - help.go, topics.go, man.go, complete.go: help, documentation, the manual page, completion
//   - input.go, reader_unix.go, gc.go: standard input, closed pipes, memory
//
// It is not a place for what a verb finds out about the ledger: that belongs to a package of its own, such as
// jobledger/cmd/jobledger/internal/state, that returns values.
//
// Held by TestProgramRunsVerb, TestNormalizeFlagsBeforeArguments, TestExitCodesOfErrors,
// TestTableFitsTheTerminal and TestProgressOnTerminalOnly.
package cli
