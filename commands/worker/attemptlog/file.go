// Package attemptlog keeps what the commands of attempts write to stdout and stderr: one file for each
// stream, which has its head and its tail if it is long, and a digest for the event that ends the attempt.
// [Stream.Check] compares the two later:
//
//	out := attemptlog.New(salt, folder, job, attempt, false, attemptlog.DefaultLimit)
//	cmd.Stdout = out
//	// … it runs, and has ended
//	kept, err := out.Close()
//
// Files in reading order:
//
//   - folder.go: [Folder], [File], [Open] and [Remove], which own the paths
//   - file.go: [Capture], which writes a file
//   - check.go: [Stream] and [Stream.Check]
//
// Held by TestLogFileKeepsHeadAndTail, TestLogCheckFindsEveryChange and TestLogFolderFollowsNothing. This
// package is not part of the Go API, and may change in any release.
package attemptlog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"

	"jobledger/ledger/event"
)

// Capture counts, digests and stores what one stream of a command writes. One goroutine at a time may use
// it.
type Capture struct {
	size int64
	salt []byte    // of the job, before the bytes of each digest
	hash hash.Hash // nil: no digest
	file *logFile  // nil: no file
}

// Write never fails: an error of the copy must not affect the command.
func (c *Capture) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	if c.hash != nil {
		c.hash.Write(p)
	}
	if c.file != nil {
		c.file.write(p)
	}
	return len(p), nil
}

// Close returns what there is to record, and an error if the log file is incomplete.
func (c *Capture) Close() (s Stream, err error) {
	if c.file != nil {
		s.KeptSHA256, err = c.file.close(c.salt)
	}
	if c.hash != nil && c.size > 0 {
		s.SHA256 = hex.EncodeToString(c.hash.Sum(nil))
	}
	s.Bytes = c.size
	return s, err
}

// New returns a Capture that digests what it gets with the salt of the job, and keeps it in the file of that
// stream of an attempt in folder, which has about limit bytes at most; folder "": in no file. A zero Capture
// only counts.
func New(salt []byte, folder string, job event.JobID, attempt int, stderr bool, limit int64) *Capture {
	c := &Capture{salt: salt, hash: saltedHash(salt)}
	if folder != "" {
		c.file = &logFile{limit: limit, create: func() (*os.File, error) {
			return create(folder, job, attempt, stderr)
		}}
	}
	return c
}

// saltedHash begins a digest as ledger.Digest does: erased output cannot be guessed.
func saltedHash(salt []byte) hash.Hash {
	h := sha256.New()
	h.Write(salt)
	return h
}

// DefaultLimit bounds the file of one stream of one attempt, in bytes.
const DefaultLimit = 1 << 20

// cutMark replaces the bytes that are left out. Its length is the same for every number, so it can be
// overwritten in place.
const cutMark = "\n[… jobledger left out %15d bytes here …]\n"

var cutMarkLen = int64(len(fmt.Sprintf(cutMark, 0)))

// logFile keeps at most limit bytes of what is written to it: the head and the tail. When the file is half as
// long again, the tail moves forward over what precedes it. So no memory is needed, a reader sees the file
// grow, and it has the last output even if the worker is killed.
type logFile struct {
	create func() (*os.File, error)
	limit  int64

	file *os.File // nil before the first byte
	size int64    // of the file
	cut  int64    // bytes left out
	err  error    // the first error; nothing is written after it
}

func (l *logFile) write(p []byte) {
	if l.file == nil && len(p) > 0 && l.err == nil {
		l.file, l.err = l.create()
	}
	for len(p) > 0 && l.err == nil {
		if room := l.limit + l.limit/2 + cutMarkLen - l.size; room <= 0 {
			l.err = l.shorten()
		} else {
			var n int
			n, l.err = l.file.WriteAt(p[:min(int64(len(p)), room)], l.size)
			l.size += int64(n)
			p = p[n:]
		}
	}
}

// shorten leaves the head and the tail, each half of the limit, and a mark between them.
func (l *logFile) shorten() error {
	head, tail := l.limit/2, l.limit-l.limit/2
	to, from := head+cutMarkLen, l.size-tail
	begin := to // of what follows the head
	if l.cut == 0 {
		begin = head
	}
	l.cut += from - begin
	if _, err := l.file.WriteAt(fmt.Appendf(nil, cutMark, l.cut), head); err != nil {
		return err
	}
	// from is not before to, so no overwritten byte is read.
	if _, err := io.Copy(io.NewOffsetWriter(l.file, to), io.NewSectionReader(l.file, from, tail)); err != nil {
		return err
	}
	l.size = to + tail
	return l.file.Truncate(l.size)
}

// close shortens the file if it is too long, and closes it. If the file does not hold all that was
// written, or could not be made, kept is the digest of what it holds.
func (l *logFile) close(salt []byte) (kept string, err error) {
	switch {
	case l.file == nil && l.err != nil:
		return digestOfNothing(salt), l.err
	case l.file == nil:
		return "", nil
	}
	if l.err == nil && l.size > l.limit+cutMarkLen {
		l.err = l.shorten()
	}
	if info, err := l.file.Stat(); err == nil && (l.cut > 0 || l.err != nil) {
		if kept, err = digestOf(l.file, info.Size(), salt); err != nil {
			kept = ""
		}
	}
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	return kept, l.err
}
