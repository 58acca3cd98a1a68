package page

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger/event"
	"jobledger/projection/attempts"
)

// What the page of a job shows of logs.
const (
	logAttempts = 20      // of the last attempts
	logTail     = 8 << 10 // bytes of the end of a file
	logLines    = 40      // lines of it
)

// logView is what one attempt wrote to one stream, as far as it is in a file on this host.
type logView struct {
	Name    string // "2.err"
	Stream  string // "attempt 2, stderr"
	Href    string // of the file; "": there is none here
	Size    string
	Missing string // why there is no file, where the attempt wrote something; ""
	Note    string // that the file is not all that was written; ""
	Tail    string // its last lines, for people
	Whole   bool   // Tail is all of the file
	Open    bool   // it is what explains the last failure
}

// jobLogs are the logs of the last attempts of j, the latest first; earlier is how many attempts there were
// before them. What an attempt wrote and is not here is in the list too, and what wrote nothing is not.
func (p *Pages) jobLogs(j state.Job, claims []attempts.Attempt) (checked []logView, earlier int, err error) {
	folder, err := logs.Folder(p.Store.LedgerPath())
	if err != nil {
		return nil, 0, err
	}
	said := make(map[int]event.Output)
	for _, e := range j.Events {
		switch e.Kind() {
		case event.KindSucceeded, event.KindFailed, event.KindReleased:
			said[e.Attempt] = logs.OutputOf(e)
		}
	}
	earlier = max(0, len(claims)-logAttempts)
	for i := len(claims) - 1; i >= earlier; i-- {
		a := claims[i]
		for _, stderr := range []bool{true, false} {
			logged := attemptlog.StreamOf(said[a.Attempt], stderr)
			v, err := readLog(folder, j.ID, a.Attempt, stderr)
			switch {
			case errors.Is(err, fs.ErrNotExist) && logged.Bytes == 0:
				continue
			case errors.Is(err, fs.ErrNotExist):
				v.Missing = fmt.Sprintf("%s were written on host %s; the file is not on this one, or was removed",
					words.ByteSize(logged.Bytes), a.Worker.Host)
			case err != nil:
				return nil, 0, err
			default:
				v.Open = stderr && i == len(claims)-1 && a.Outcome == event.KindFailed
			}
			stream := "out"
			if stderr {
				stream = "err"
			}
			v.Name, v.Stream = fmt.Sprintf("%d.%s", a.Attempt, stream), fmt.Sprintf("attempt %d, std%s", a.Attempt,
				stream)
			if v.Size != "" {
				v.Href = fmt.Sprintf("/api/v1/jobs/%s/logs/%d/%s", j.ID, a.Attempt, stream)
			}
			if v.Size != "" && logged.Bytes > 0 && words.ByteSize(logged.Bytes) != v.Size {
				v.Note = "of " + words.ByteSize(logged.Bytes) + " that were written"
			}
			checked = append(checked, v)
		}
	}
	return checked, earlier, nil
}

// readLog reads the end of the file of one stream of an attempt.
func readLog(folder string, job event.JobID, attempt int, stderr bool) (v logView, err error) {
	file, err := attemptlog.Open(folder, job, attempt, stderr)
	if err != nil {
		return v, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return v, err
	}
	size := info.Size()
	text, err := io.ReadAll(io.NewSectionReader(file, max(0, size-logTail), logTail))
	if err != nil {
		return v, err
	}
	lines := strings.Split(strings.TrimRight(string(text), "\r\n"), "\n")
	if v.Whole = size <= logTail && len(lines) <= logLines; !v.Whole && size > logTail && len(lines) > 1 {
		lines = lines[1:] // the first one has no beginning
	}
	lines = lines[max(0, len(lines)-logLines):]
	for i, line := range lines {
		lines[i] = words.EscapeLines(strings.TrimSuffix(line, "\r"))
	}
	v.Size, v.Tail = words.ByteSize(size), strings.Join(lines, "\n")
	return v, nil
}
