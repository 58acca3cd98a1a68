package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/commands"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

// TestIntegrityOfEachCheck compares the line of each check, on the page and in the API, with what verify
// finds: in a ledger that is right, in one with an altered row, and in one with an event that cannot be read.
func TestIntegrityOfEachCheck(t *testing.T) {
	ledgertest.OfSQLite(t) // the damage is done with a shell of SQLite
	t.Parallel()
	night := importNight(t)
	for _, damage := range []struct {
		name, statements string
		found            map[string]string // of the checks with a finding
		others           string
	}{
		{"right", "", nil, "nothing found"},
		{"row", `UPDATE jobs SET priority = 7 WHERE n IN (SELECT n FROM jobs ORDER BY n LIMIT 2)`,
			map[string]string{audit.FindDiffers: "2 findings"}, "nothing found"},
		{"event", `DROP TRIGGER events_no_update; UPDATE events SET data = '{' WHERE pos = 700`,
			map[string]string{audit.FindDamaged: "1 finding", audit.FindGuard: "1 finding"},
			"nothing found before the check stopped"},
	} {
		t.Run(damage.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "copy.db")
			night.copyTo(path)
			file, err := sql.Open("sqlite", path)
			check(t, err)
			_, err = file.ExecContext(t.Context(), damage.statements)
			check(t, err)
			check(t, file.Close())
			_, get := serveOn(t, ledgertest.OpenAt(t, path), atMorning)
			page := ""
			for !strings.Contains(page, `class="verdict"><span`) && !strings.Contains(page, "in what was verified") {
				var status int
				if status, _, page = get("/integrity"); status != 200 {
					t.Fatalf("%d %s", status, page)
				}
				time.Sleep(10 * time.Millisecond) // no event says that a check has ended
			}
			var answer struct {
				Stopped bool
				Checks  []struct {
					Code, Finds string
					Findings    int
					Until       *int64
				}
			}
			_, _, text := get("/api/v1/integrity")
			check(t, json.Unmarshal([]byte(text), &answer))
			rows := tableOf(t, page, `aria-label="checks"`)[1:]
			if len(rows) != len(audit.Checks) || len(answer.Checks) != len(rows) {
				t.Fatalf("%d rows and %d checks in the API, want %d", len(rows), len(answer.Checks), len(audit.Checks))
			}
			for i, c := range audit.Checks {
				want, has := damage.found[c.Code]
				if !has {
					want = damage.others
				}
				row, one := rows[i], answer.Checks[i]
				until := fmt.Sprint(*one.Until)
				if row[0] != c.Code || row[1] != want || row[2] != until ||
					row[3] != strings.ReplaceAll(c.Finds, "`", "") {
					t.Errorf("got %q, want %s %s %s", row, c.Code, want, until)
				}
				if one.Code != c.Code || one.Finds != c.Finds || has != (one.Findings > 0) {
					t.Errorf("the API has %+v, want %s", one, want)
				}
			}
			if stops := strings.Contains(damage.others, "stopped"); answer.Stopped != stops {
				t.Errorf("stopped: %v, want %v", answer.Stopped, stops)
			}
			want := "None of 34 checks found anything."
			if n := len(damage.found); n > 0 {
				want = fmt.Sprintf("%d check", n)
			}
			if !strings.Contains(page, want) || !strings.Contains(page, "The whole ledger was last verified") {
				t.Errorf("the page does not say %q:\n%s", want, page)
			}
		})
	}
}

// TestIntegrityIsOfNow opens the page by the link of a page about the past. It shows what is so now, and says
// that; its links lead back to that moment. What is not a moment is refused.
func TestIntegrityIsOfNow(t *testing.T) {
	t.Parallel()
	_, get := serveOn(t, importNight(t).Store, atMorning)
	_, _, page := get("/integrity?at=pos:2159")
	for _, want := range []string{"This page is always about now", `href="/lanes?at=pos%3A2159"`,
		">pos 4564</a> · ", "<dt>link</dt><dd><code>/integrity</code>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	if strings.Contains(page, "Nothing can be changed there") {
		t.Error("the page says that it is about the past")
	}
	if _, _, page := get("/integrity"); strings.Contains(page, "always about now") {
		t.Error("without a moment, the page says that it has none")
	}
	if status, _, text := get("/integrity?at=nonsense"); status != 400 {
		t.Errorf("a moment that is none: %d %s", status, text)
	}
}

// TestIntegrityIsWhatTheCommandsSay compares what the page and the API say of the ledger as a whole with what
// checkpoint, seal, events and doctor print of the same ledger.
func TestIntegrityIsWhatTheCommandsSay(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	kept := filepath.Join(t.TempDir(), "kept")
	ran := func(words ...string) string {
		t.Helper()
		code, out, said := s.run(0, words...)
		if code != 0 && (words[0] != "doctor" || code != cli.ExitDiscrepancy) {
			t.Fatalf("%v: %d %s", words, code, said)
		}
		return out
	}
	var erased []string
	for range 3 {
		erased = append(erased, string(s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("ada")}).ID))
	}
	s.Now = time.Now().Add(time.Minute) // no file is from the future
	now := func() time.Time { return s.Now.In(time.FixedZone("", 2*3600)) }
	_, before := serveOn(t, s.Store, now)
	if _, _, page := before("/integrity"); !strings.Contains(page, "as sealing is off") ||
		!strings.Contains(page, "There are no seals") {
		t.Errorf("before seal --init: %s", page)
	}
	ran("seal", "--init", "--origin", "jobs.example.com")
	for _, id := range erased[:2] {
		ran("cancel", id, "--reason", "not needed")
		ran("erase", id, "--reason", "a wish")
	}
	ran("rebuild")
	ran("checkpoint", "--to", kept)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	ran("pause", "-q", "mail", "--reason", "smtp is down")
	var checkpoint struct {
		Origin, Root, Text string
		Size               int64
	}
	check(t, json.Unmarshal([]byte(ran("checkpoint", "--json")), &checkpoint))
	var rebuilt struct {
		Pos       int64
		At, Actor string
	}
	check(t, json.Unmarshal([]byte(ran("events", "--json", "--kind", "rebuilt")), &rebuilt))
	var findings []doctor.Finding
	for line := range strings.Lines(ran("doctor", "--json")) {
		var f doctor.Finding
		check(t, json.Unmarshal([]byte(line), &f))
		findings = append(findings, f)
	}
	type happened struct {
		Count int64
		Last  *struct {
			Pos       int64
			At, Actor string
		}
	}
	var answer struct {
		Head struct {
			Pos                int64
			Origin, Root, Text string
		}
		Seals struct {
			Sealing    bool
			Count      int64
			HandedOut  int64 `json:"handed_out"`
			Checkpoint struct {
				Size int64
				Root string
			}
			Verdict string
		}
		Restores, Rebuilds, Imports happened
		Erased                      int64 `json:"erased_jobs"`
		Archive                     struct{ Files, Events int64 }
		Doctor                      []doctor.Finding
	}
	_, get := serveOn(t, s.Store, now)
	_, _, text := get("/api/v1/integrity")
	check(t, json.Unmarshal([]byte(text), &answer))
	if h := answer.Head; h.Pos != checkpoint.Size || h.Origin != checkpoint.Origin ||
		h.Root != checkpoint.Root || h.Text != checkpoint.Text {
		t.Errorf("the head is %+v, and checkpoint prints %+v", h, checkpoint)
	}
	content, err := os.ReadFile(kept)
	check(t, err)
	lines, _, err := prove.ReadKept(content)
	check(t, err)
	if q := answer.Seals; !q.Sealing || q.HandedOut != 1 || q.Count != 2 || q.Verdict != "same" ||
		q.Checkpoint.Size != lines[0].Size || q.Checkpoint.Root != lines[0].Root.String() {
		t.Errorf("the seals are %+v, and %+v was handed out", q, lines)
	}
	if r := answer.Rebuilds; r.Count != 1 || r.Last.Pos != rebuilt.Pos || r.Last.At != rebuilt.At ||
		r.Last.Actor != rebuilt.Actor {
		t.Errorf("the rebuilds are %+v, and events prints %+v", r, rebuilt)
	}
	if answer.Restores.Count+answer.Imports.Count+answer.Archive.Files+answer.Archive.Events != 0 ||
		answer.Erased != 2 {
		t.Errorf("%+v", answer)
	}
	for _, all := range [][]doctor.Finding{answer.Doctor, findings} { // ages differ from one call to the next
		for i := range all {
			all[i].Seen, _, _ = strings.Cut(all[i].Seen, " since ")
		}
	}
	if !slices.Equal(answer.Doctor, findings) ||
		!slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Code == doctor.CodePaused }) {
		t.Errorf("the API has\n%+v\nand doctor prints\n%+v", answer.Doctor, findings)
	}
	_, _, page := get("/integrity")
	for _, want := range append(strings.Split(strings.TrimSpace(checkpoint.Text), "\n"),
		"2 seals, of which 1 handed out", "the ledger still has them") {
		if !strings.Contains(html.UnescapeString(page), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	counts := tableOf(t, page, `aria-label="counts"`)[1:]
	for i, want := range []string{"0", "1", "0", "2", "0", "0"} {
		if counts[i][1] != want {
			t.Errorf("%s: %s, want %s", counts[i][0], counts[i][1], want)
		}
	}
	for _, f := range findings {
		if !strings.Contains(html.UnescapeString(page), f.Seen) ||
			!strings.Contains(html.UnescapeString(page), f.Remedy) {
			t.Errorf("the page does not have %+v", f)
		}
	}
}
