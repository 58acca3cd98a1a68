package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// What a command that only reads answers is the same before and after a part of the history has left for the
// archive, or it is less and says so.
func TestArchiveLessIsSaid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	t.Setenv(cli.ArchiveEnv, dir)
	s := importNight(t)
	s.Now = morning
	var tail int64
	var id, key, keyQueue string // jobs that ended early
	check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		if tail, err = tx.Tail(t.Context()); err != nil {
			return err
		}
		ended := make(map[int64]bool)
		f := ledger.Filter{Kinds: []event.Kind{event.KindSucceeded, event.KindEnqueued}, Until: 400}
		byN := make(map[int64]*event.Enqueued)
		for e, err := range tx.Events(t.Context(), f) {
			if err != nil {
				return err
			}
			if b, ok := e.Body.(*event.Enqueued); ok {
				byN[e.N] = b
				continue
			}
			if ended[e.N] = true; id == "" {
				id = string(e.Job)
			}
			if b := byN[e.N]; b.Key != "" && b.UniqueWhile == "" && key == "" {
				key, keyQueue = b.Key, b.Queue
			}
		}
		return nil
	}))
	end := fmt.Sprintf("pos:%d", tail)
	late := fmt.Sprintf("pos:%d", tail-100)
	lines := []string{"status", "status --as-of " + end, "status --as-of " + late, "status --as-of pos:900",
		"list --limit 0", "list --limit 0 --as-of " + end, "list --limit 0 --as-of " + late,
		"list --limit 0 --as-of pos:900", "list --limit 0 --state failed", "list --limit 0 -q mail",
		"list --limit 0 --state succeeded --as-of " + late, "list --limit 0 --state queued",
		"list --limit 0 --from pos:100 --to " + end, "list --limit 0 --to " + late,
		"list --limit 0 --find smtp", "list --find id:" + id, "list --host alpha --limit 0",
		"queues", "queues --as-of " + late, "workers --as-of " + late, "workers --as-of pos:900",
		"events --to " + end, "events --job " + id, "attempts --to " + end, "attempts --job " + id,
		"owner " + id + " --as-of pos:900", "why " + id, "history " + id, "wait " + id,
		"diff --from pos:300 --to " + end, "export --no-bodies --to " + end,
		"replay --dry-run --as-of " + late}
	for _, kind := range []string{"failures", "waits", "taken", "longest", "poison", "depth", "silent"} {
		lines = append(lines, "report "+kind+" --to "+end)
	}
	if key == "" {
		t.Fatal("no job with a key has ended early")
	}
	lines = append(lines, "list --key "+key, "list --find key:"+key, "wait --key "+key+" -q "+keyQueue)
	ask := func(line string) (code int, out, said string) {
		words := strings.Fields(line)
		if words[0] != "export" {
			words = append(words, "--json")
		}
		return s.run(0, words...)
	}
	type answer struct {
		code int
		out  string
	}
	before := make(map[string]answer)
	for _, line := range lines {
		code, out, said := ask(line)
		if before[line] = (answer{code, out}); code != cli.ExitOK && code != cli.ExitNothing {
			t.Errorf("%s: %d %s", line, code, said)
		}
		if strings.Contains(said, `"left"`) {
			t.Errorf("%s: %s, and nothing has left", line, said)
		}
	}
	s.leave(dir)
	less := 0
	for _, line := range lines {
		code, out, said := ask(line)
		if code == before[line].code && out == before[line].out {
			continue
		}
		var note struct{ Left struct{ Jobs int64 } }
		for text := range strings.Lines(said) {
			if strings.HasPrefix(text, `{"left":`) {
				check(t, json.Unmarshal([]byte(text), &note))
			}
		}
		if note.Left.Jobs == 0 {
			t.Errorf("%s: %d, %d bytes, and before %d, %d bytes: %.300s", line, code, len(out), before[line].code,
				len(before[line].out), said)
			continue
		}
		less++
		was := strings.Split(before[line].out, "\n")
		for _, text := range strings.Split(out, "\n") {
			if !strings.HasPrefix(line, "status") && !slices.Contains(was, text) {
				t.Errorf("%s: a line that was not there before: %.300s", line, text)
			}
		}
		if strings.HasPrefix(line, "list") { // all of it is in the archive
			if code, out, said := ask(line + " --archived"); code != before[line].code || out != before[line].out {
				t.Errorf("%s --archived: %d, %d bytes, and before %d bytes: %s", line, code, len(out),
					len(before[line].out), said)
			}
		}
		if code, _, said := ask(line + " --live"); code != cli.ExitOK && code != cli.ExitNothing ||
			strings.Contains(said, `"left"`) {
			t.Errorf("%s --live: %d %s", line, code, said)
		}
	}
	if less < 5 {
		t.Errorf("only %d answers are less: nothing is tried", less)
	}

	// Over HTTP it is said in a header and a member, and on the page in a sentence.
	serving := serveStore(t, s.Store, atMorning)
	reads := serving.asker(t, access.Read)
	for path, want := range map[string]bool{"/jobs": true, "/jobs?state=queued": false,
		"/jobs?state=failed": true, "/jobs?at=" + late: false, "/jobs?from=" + late: false,
		"/status": true, "/jobs?at=pos:900": false, "/queues": false} {
		answer := reads(path)
		var body struct {
			Items []json.RawMessage
			Left  *struct {
				Jobs  int64
				Until string
			}
		}
		check(t, json.Unmarshal([]byte(readAll(t, answer)), &body))
		if said := answer.Header.Get("Jobledger-Left"); answer.StatusCode != 200 || (body.Left != nil) != want ||
			want && said != fmt.Sprint(body.Left.Jobs) || !want && said != "" {
			t.Errorf("%s: %s, left %+v, header %q", path, answer.Status, body.Left, said)
		}
		if want && strings.HasPrefix(path, "/jobs") {
			lined := reads(path, "Accept", "application/x-ndjson")
			if readAll(t, lined); lined.Header.Get("Jobledger-Left") == "" {
				t.Errorf("%s as lines has no header", path)
			}
		}
	}
	for _, path := range []string{"/jobs?key=" + key, "/jobs?find=id:" + id} {
		if text := readAll(t, reads(path)); strings.Count(text, `"id":`) != 1 {
			t.Errorf("%s: %s", path, text)
		}
	}
	later := serveStore(t, s.Store, func() time.Time { return morning.Add(48 * time.Hour) })
	if code, _, text := getter(t, later)("/jobs"); !strings.Contains(text, "left the ledger for its archive") {
		t.Errorf("the page of jobs does not say what has left: %d %s", code, text)
	}
	commandstest.Verify(t, s.Store)
}
