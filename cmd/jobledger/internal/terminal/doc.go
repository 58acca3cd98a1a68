// Package terminal is about what reads the output of the program: a bar on a terminal that shows how far a
// long command has come ([StartProgress]), the pager for long texts ([Pager]), and whether the reader of a
// pipe is gone ([ReaderGone]).
//
// Files: progress.go, pager.go, reader_unix.go, reader_other.go.
package terminal
