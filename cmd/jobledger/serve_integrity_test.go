package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
			want := "None of 32 checks found anything."
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
// that; its links lead back to that moment. What is no moment is refused.
func TestIntegrityIsOfNow(t *testing.T) {
	t.Parallel()
	_, get := serveOn(t, importNight(t).Store, atMorning)
	_, _, page := get("/integrity?at=pos:2159")
	for _, want := range []string{"This page is always about now", `href="/lanes?at=pos%3A2159"`,
		"pos 4564 · ", ">/integrity?at=pos%3A4564<"} {
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
