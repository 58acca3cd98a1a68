// Package segment reads and writes the files of an archive. A segment file holds the events of one range of
// positions, complete and in order, as the lines that event.Event.AppendLeaf gives: those
// of an export without payloads and results, in ASCII. It needs no ledger, so that it can be read where there
// is none:
//
//	zcat 0000000000-0001048576.jsonl.gz | jq 'select(.kind == "failed")'
//
// The file is a sequence of gzip members with up to [MemberLines] lines each:
//
//   - First the carried-in lines, job by job: every event up to the begin of the range of the jobs that had
//     not ended there, or that have events within it. So one file is enough to fold each of its jobs.
//   - Then the events of the range. Each member has exactly MemberLines lines, which is one block of the hash
//     tree of package proof: its hash can be compared with what the ledger, or an older
//     proof, says.
//
// Equal events make equal bytes, with the same version of Go.
//
// [Create] writes a file so that a crash at any moment leaves a whole file or none, and reads it back from
// the disk before it gives it its name. [Check] reads a file from its begin to its end and returns the
// [Facts] of what it really holds. An [Index] says in which members the events of a job are; it can be made
// again from the file at any time.
//
// Files in reading order: facts.go, writer.go, reader.go, check.go, index.go, create.go.
//
// Held by TestSegmentHoldsItsRange, TestSegmentMutations and TestCreateNeedsConfirmation. This package is
// not part of the Go API, and may change in any release.
package segment
