package jobledgertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jobledger/ledger/event"
)

// UpdateGolden is the name of the environment variable that makes [Ledger.Golden] write its files.
const UpdateGolden = "JOBLEDGER_UPDATE_GOLDEN"

// History returns what happened to a job, a line for each event: the time since it was enqueued, the kind,
// who acted, and what the event says as JSON. Times in it are since the job was enqueued too. What differs
// from run to run or says nothing is left out: digests, the process of the worker, and fields without a
// value.
func (l *Ledger) History(id event.JobID) string {
	l.t.Helper()
	var text strings.Builder
	var start time.Time
	for _, e := range l.events(id) {
		if start.IsZero() {
			start = e.At
		}
		text.WriteString("+" + e.At.Sub(start).String() + " " + e.Kind().String() + " by " + e.Actor)
		said, err := said(e, start)
		if err != nil {
			l.t.Fatalf("event %d: %v", e.Pos, err)
		}
		if said != "{}" {
			text.WriteString(" " + said)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// said returns the data of e as History has it, with its keys sorted.
func said(e event.Event, start time.Time) (string, error) {
	text, err := e.MarshalJSON()
	if err != nil {
		return "", err
	}
	var public struct{ Data map[string]any }
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&public); err != nil {
		return "", err
	}
	for key, value := range public.Data {
		switch text, isText := value.(string); {
		case strings.HasSuffix(key, "sha256"), key == "host", key == "pid", key == "boot", isEmpty(value):
			delete(public.Data, key)
		case isText:
			if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
				public.Data[key] = "+" + at.Sub(start).String()
			}
		}
	}
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	lines.SetEscapeHTML(false)
	err = lines.Encode(public.Data)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// Golden ends the test unless the History of the job is the content of the file. If the environment has
// JOBLEDGER_UPDATE_GOLDEN=1 it writes the file, and its folder, instead: read the difference before you keep
// it.
func (l *Ledger) Golden(id event.JobID, file string) {
	l.t.Helper()
	got := l.History(id)
	if os.Getenv(UpdateGolden) == "1" {
		err := os.MkdirAll(filepath.Dir(file), 0o755) // #nosec G301 -- a folder of sources
		if err == nil {
			err = os.WriteFile(file, []byte(got), 0o644) // #nosec G306 -- likewise
		}
		if err != nil {
			l.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file) // #nosec G304 -- the test names it
	if errors.Is(err, fs.ErrNotExist) {
		l.t.Fatalf("%s does not exist; with %s=1 it is written. The history is:\n%s", file, UpdateGolden, got)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	if string(want) != got {
		l.t.Fatalf("the history of job %s is not that of %s; if that is meant, set %s=1\ngot:\n%swant:\n%s",
			id, file, UpdateGolden, got, want)
	}
}
