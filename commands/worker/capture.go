package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"jobledger/ledger"
	"jobledger/projection"
)

// LogFolder is where the commands' output of the ledger at path db is kept.
func LogFolder(db string) string {
	if real, err := filepath.EvalSymlinks(db); err == nil {
		db = real
	}
	return db + ".logs"
}

// LogFile is the file in folder that holds what one attempt wrote. There is none where it wrote nothing.
func LogFile(folder string, job ledger.JobID, attempt int, stderr bool) string {
	stream := "out"
	if stderr {
		stream = "err"
	}
	return filepath.Join(folder, string(job), fmt.Sprintf("%d.%s", attempt, stream))
}

// captured takes what one stream of a child writes: it counts, and where it may look, digests and files it.
type captured struct {
	size int64
	hash hash.Hash // nil: it may not look
	file *logFile  // nil: no file
}

// Write never fails: what becomes of a copy must not change what the child can do.
func (c *captured) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	if c.hash != nil {
		c.hash.Write(p)
	}
	if c.file != nil {
		c.file.write(p)
	}
	return len(p), nil
}

// close returns the digest and the size, and why the file is not what it should be, if so.
func (c *captured) close() (digest string, size int64, err error) {
	if c.file != nil {
		err = c.file.close()
	}
	if c.hash != nil && c.size > 0 {
		digest = hex.EncodeToString(c.hash.Sum(nil))
	}
	return digest, c.size, err
}

// capture is for both streams of an attempt at job.
func (c *Command) capture(job projection.Job) (streams [2]captured) {
	for i := range streams {
		if c.Private {
			continue
		}
		streams[i].hash = sha256.New()
		streams[i].hash.Write(job.Salt) // as ledger.Digest has it, so that an erased job's output cannot be guessed
		if c.Logs != "" {
			streams[i].file = &logFile{path: LogFile(c.Logs, job.ID, job.Attempt, i == 1), limit: c.logLimit()}
		}
	}
	return streams
}

// defaultLogLimit bounds the file of one stream of one attempt.
const defaultLogLimit = 1 << 20

// cutMark stands where something is left out. It is as long for any number, so that it can be written anew in
// its place.
const cutMark = "\n[… jobledger left out %15d bytes here …]\n"

var cutMarkLen = int64(len(fmt.Sprintf(cutMark, 0)))

// logFile keeps what is written to it in a file, of a flood the head and the tail: when the file has grown to
// half as much again as it may hold, the tail moves forward over what comes before it. So what a killed
// worker leaves behind has the last words too, no memory is needed, and whoever reads the file meanwhile sees
// it grow.
type logFile struct {
	path  string
	limit int64

	file *os.File // nil before the first byte
	size int64    // of the file
	cut  int64    // bytes left out
	err  error    // the first; from then on nothing is written
}

func (l *logFile) write(p []byte) {
	if l.file == nil && len(p) > 0 && l.err == nil {
		l.err = l.open()
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

func (l *logFile) open() (err error) {
	if err = os.MkdirAll(filepath.Dir(l.path), 0o700); err == nil {
		l.file, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	return err
}

// shorten leaves the head and the tail, each half of the limit, with a mark between them.
func (l *logFile) shorten() error {
	head, tail := l.limit/2, l.limit-l.limit/2
	to, from := head+cutMarkLen, l.size-tail
	begin := to // of what is behind the head
	if l.cut == 0 {
		begin = head
	}
	l.cut += from - begin
	if _, err := l.file.WriteAt(fmt.Appendf(nil, cutMark, l.cut), head); err != nil {
		return err
	}
	// from is not before to, so what is read has not been written over.
	if _, err := io.Copy(io.NewOffsetWriter(l.file, to), io.NewSectionReader(l.file, from, tail)); err != nil {
		return err
	}
	l.size = to + tail
	return l.file.Truncate(l.size)
}

// close leaves the file as it stays.
func (l *logFile) close() error {
	if l.file == nil {
		return l.err
	}
	if l.err == nil && l.size > l.limit+cutMarkLen {
		l.err = l.shorten()
	}
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	return l.err
}
