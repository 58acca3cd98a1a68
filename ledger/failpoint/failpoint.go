// Package failpoint lets a test kill, stop or delay this program at a named step, and move its clock. It
// does so only in a program that was built with -tags failpoint. In any other build, Hit is empty and the
// compiler removes it.
//
// The environment says what is to happen:
//
//	JOBLEDGER_FAILPOINT=commit         the process kills itself at the first step of this name
//	JOBLEDGER_FAILPOINT=commit:3       at the third
//	JOBLEDGER_FAILPOINT=commit=stop    it stops itself there, until it is sent CONT
//	JOBLEDGER_FAILPOINT=commit=3s      it waits there for so long
//	JOBLEDGER_CLOCK=-1h                the program's clock is an hour late
//	JOBLEDGER_CLOCK=/tmp/clock         by as much as that file says, so that it can jump
//
// Held by TestFailpointsAllTested, TestFailpointsAbsentFromRelease and TestKilledAtEachStep of the
// program. This package is not part of the Go API, and may change in any release.
package failpoint
