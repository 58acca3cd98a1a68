package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
)

// leave archives what has ended of the scenario in the folder dir, and removes it.
func (s *scenario) leave(dir string) {
	s.T.Helper()
	options := archive.Options{Dir: dir, Actor: "cli:test", OlderThan: time.Hour, Most: 8 * proof.BlockSize}
	due, err := archive.Due(s.T.Context(), s.Store, options.OlderThan)
	for hi := options.Most; err == nil && hi < due.Hi; hi += options.Most {
		_, err = archive.Close(s.T.Context(), s.Service, hi, options)
	}
	if err == nil {
		m := archive.Removal{Service: s.Service, Dir: dir, Actor: "cli:test", OlderThan: time.Hour}
		_, err = m.All(s.T.Context(), nil)
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// Claims of which events have left the ledger are answered from the archive, as the command line does; a file
// that is damaged or not there is named.
func TestArchivedClaimsOverHTTP(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	t.Setenv(cli.ArchiveEnv, dir) // on a server no folder is known without it
	s := importNight(t)
	s.Now = morning
	var first, middle string
	var at time.Time
	check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		f := ledger.Filter{Kinds: []event.Kind{event.KindSucceeded}, Limit: 1}
		for e, err := range tx.Events(t.Context(), f) {
			if err != nil {
				return err
			}
			first = string(e.Job)
		}
		e, _, err := tx.EventAt(t.Context(), 1500)
		middle, at = e.At.UTC().Format(time.RFC3339), e.At
		return err
	}))
	serving := serveStore(t, s.Store, atMorning)
	ask := serving.asker(t, access.Read)
	exports := []string{"--format csv", "--format trace", "--format csv --from pos:300 --to pos:1500",
		"--format trace --from pos:300 --to pos:1500", "--format csv --from pos:1200",
		"--format otlp --from pos:300 --to pos:1500", "--format otlp --to pos:1400",
		"--format trace --to " + middle, "--format csv --from " + middle}
	attempts := []string{"", "--outcome failed", "--from pos:1200 --to pos:1500", "--overlap", "--to " + middle,
		"--from pos:300 --to pos:700 -q mail", "--job " + first}
	parameters := func(words string) string {
		fields := strings.Fields(strings.ReplaceAll(words, "-q ", "--queue "))
		var query []string
		for len(fields) > 0 {
			name := strings.TrimPrefix(fields[0], "--")
			if fields = fields[1:]; name == "overlap" {
				query = append(query, "overlap=true")
				continue
			}
			query = append(query, name+"="+fields[0])
			fields = fields[1:]
		}
		return "?" + strings.Join(query, "&")
	}
	// listed are all pages of claims, line by line.
	listed := func(path string) string {
		var lines strings.Builder
		for path != "" {
			answer := ask(path, "Accept", "application/x-ndjson")
			text := readAll(t, answer)
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %s", path, text)
			}
			lines.WriteString(text)
			next, _, _ := strings.Cut(strings.TrimPrefix(answer.Header.Get("Link"), "</api/v1"), ">")
			path = next
		}
		return lines.String()
	}
	before := make(map[string]string)
	for _, words := range exports {
		before[words] = readAll(t, ask("/export"+parameters(words)))
	}
	for _, words := range attempts {
		before[words] = listed("/attempts" + parameters(words))
	}
	then := readAll(t, ask("/attempts?limit=1000&at="+at.UTC().Format(time.RFC3339Nano)))

	s.leave(dir)
	if j, err := s.Get(t.Context(), event.JobID(first)); !errors.Is(err, commands.ErrNoJob) {
		t.Fatalf("the first job has not left: %v, %v", j, err)
	}
	for _, words := range exports {
		code, want, messages := s.run(0, strings.Fields("export "+words)...)
		answer := ask("/export" + parameters(words))
		if got := readAll(t, answer); code != 0 || answer.StatusCode != http.StatusOK || got != want ||
			want != before[words] && !strings.HasSuffix(words, middle) && strings.Contains(words, "--to") {
			t.Errorf("export %s: %s, %d bytes, the command writes %d, and before it left there were %d: %s", words,
				answer.Status, len(got), len(want), len(before[words]), messages)
		}
	}
	for _, words := range attempts {
		code, want, messages := s.run(0, strings.Fields("attempts --json "+words)...)
		if got := listed("/attempts" + parameters(words)); code != 0 || got != want || got != before[words] {
			t.Errorf("attempts %s: %d bytes, the command prints %d, and before it left there were %d: %s", words,
				len(got), len(want), len(before[words]), messages)
		}
	}
	if got := readAll(t, ask("/attempts?limit=1000&at="+at.UTC().Format(time.RFC3339Nano))); got != then {
		t.Errorf("then: %.300s\nand before %.300s", got, then)
	}
	_, want, _ := s.run(0, "attempts", "--json", "--job", first)
	if got := listed("/jobs/" + first + "/attempts"); got != want || got == "" {
		t.Errorf("of the job: %s\nwant %s", got, want)
	}

	// A token for its queue gets them too, and one for another queue nothing.
	var queue string
	check(t, s.Store.Read(t.Context(), func(*ledger.Tx) error {
		history, _, err := archive.History(t.Context(), s.Store, dir, first)
		queue = history[0].Body.(*event.Enqueued).Queue
		return err
	}))
	for pattern, status := range map[string]int{queue: 200, queue[:2] + "*": 200, "other": 404,
		queue + "s": 404} {
		limited := serving.askerFor(t, []string{pattern}, access.Read)
		answer := limited("/jobs/"+first+"/attempts", "Accept", "application/x-ndjson")
		if got := readAll(t, answer); answer.StatusCode != status || status == 200 && got != want ||
			status == 404 && !strings.Contains(got, `"code":"no_job"`) {
			t.Errorf("the claims of the job, with a token for %s: %s %s", pattern, answer.Status, got)
		}
		unknown := readAll(t, limited("/jobs/01KDY9FY88TH00000000000011/attempts"))
		answer = limited("/jobs/" + first)
		got := readAll(t, answer)
		if status == 404 && got != strings.ReplaceAll(unknown, "01KDY9FY88TH00000000000011", first) ||
			status == 200 && got != readAll(t, ask("/jobs/"+first)) || answer.StatusCode != status {
			t.Errorf("the job, with a token for %s: %s %s", pattern, answer.Status, got)
		}
	}

	// A file that is not there, or is damaged, is named.
	file := filepath.Join(dir, "0000000000-0000002048.jsonl.gz")
	text, err := os.ReadFile(file)
	check(t, err)
	refused := func(what, word string, status int) {
		t.Helper()
		code, _, said := s.run(0, "attempts", "--archive-cache", "off")
		if code == cli.ExitOK || !strings.Contains(said, filepath.Base(file)) {
			t.Errorf("%s: the command ends with %d: %s", what, code, said)
		}
		broken := serveStore(t, s.Store, atMorning) // it has no copy
		ask := broken.asker(t, access.Read)
		for _, path := range []string{"/attempts", "/export?format=csv", "/export?format=trace&to=pos:9"} {
			answer := ask(path)
			var p struct{ Code, Detail string }
			body := readAll(t, answer)
			if answer.StatusCode != status || json.Unmarshal([]byte(body), &p) != nil || p.Code != word ||
				!strings.Contains(p.Detail, filepath.Base(file)) {
				t.Errorf("%s, %s: %s %s", what, path, answer.Status, body)
			}
		}
	}
	check(t, os.Rename(file, file+".away"))
	refused("a file that is away", "nothing", http.StatusNotFound)
	damaged := append([]byte(nil), text...)
	damaged[len(damaged)/3] ^= 1
	check(t, os.WriteFile(file, damaged, 0o600))
	refused("a damaged file", "discrepancy", http.StatusInternalServerError)
	check(t, os.Remove(file))
	check(t, os.Rename(file+".away", file))
	commandstest.Verify(t, s.Store)
}
