package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// growing are the lines of a page about the past that say how much there is by now.
var growing = regexp.MustCompile(`(?m)^(.*(data-tail=|>verified to pos |placeholder="14:30,|id="when"|` +
	`class="here"|data-map=|name="bodies"|<path class="\w+" d="M\d+ \d+v|<desc|marks).*)?\n`)

// noBodies are the members of a job that only those see who may see payloads.
var noBodies = regexp.MustCompile(`"(payload|result)(_base64|_omitted)?":null,`)

// What is asked of a moment or a window that has left the ledger is answered as if it had not, to the byte,
// and so is what is asked of a job. Payloads are not there.
func TestMomentsThatLeftOverHTTP(t *testing.T) {
	ledgertest.Slow(t) // TestArchivedClaimsOverHTTP is quicker, about claims
	t.Parallel()
	s := importNight(t)
	s.Now = morning
	dir := archiveFolder(s.Store)
	if dir == "" { // on a server
		dir = filepath.Join(t.TempDir(), "archive")
	}
	var job string // which ended early
	check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		f := ledger.Filter{Kinds: []event.Kind{event.KindFailed}, Limit: 1}
		for e, err := range tx.Events(t.Context(), f) {
			if err != nil {
				return err
			}
			job = string(e.Job)
		}
		return nil
	}))
	serving := serveFrom(t, s.Store, dir, atMorning, func(c *web.Config) {
		c.Times.Archive = 20 * time.Millisecond
	})
	reads, all := serving.asker(t, access.Read), serving.asker(t, access.Read, access.Bodies)
	ofMail := serving.askerFor(t, []string{"mail"}, access.Read)
	ofRender := serving.askerFor(t, []string{"render"}, access.Read)
	get := getter(t, serving)

	at := func(moment string, paths ...string) (all []string) {
		for _, path := range paths {
			mark := "?"
			if strings.Contains(path, "?") {
				mark = "&"
			}
			all = append(all, path+mark+"at="+moment)
		}
		return all
	}
	ofJob := []string{"/jobs/" + job, "/jobs/" + job + "/events", "/jobs/" + job + "/why",
		"/jobs/" + job + "/attempts"}
	moments := append([]string{"/status", "/jobs?limit=20", "/jobs?state=running", "/queues", "/queues/mail",
		"/jobs?find=queue:mail+error:smtp*", "/workers", "/workers?all=true", "/jobs/" + job + "/owner", "/moments",
		"/events?limit=9", "/attempts", "/series", "/depth", "/failures", "/lanes", "/lanes?px=400&queue=mail",
		"/diff?from=pos:200"}, ofJob...)
	paths := append(at("pos:900", moments...), at("2026-03-15T00:40:00Z", moments...)...)
	paths = append(append(paths, ofJob...), "/events?to=pos:300", "/events?from=pos:300&limit=5",
		"/events?job="+job, "/events/7", "/events?last=20&to=pos:400", "/diff?from=pos:300&to=pos:500",
		"/series?from=pos:300&to=pos:900", "/failures?from=pos:300&to=pos:900", "/events?limit=3&kind=failed")
	pages := append(at("pos:900", "/", "/lanes", "/jobs", "/jobs?state=running", "/jobs/"+job, "/failures",
		"/workers", "/workers/alpha-mail", "/queues/mail", "/diff?from=pos:200", "/incident?from=pos:200",
		"/events"), "/jobs/"+job)
	before := make(map[string]string)
	for _, path := range paths {
		answer := reads(path)
		if before[path] = readAll(t, answer); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, answer.Status, before[path])
		}
	}
	shown := make(map[string]string)
	for _, path := range pages {
		status, _, text := get(path)
		if shown[path] = text; status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}

	s.leave(dir)
	if _, err := s.Get(t.Context(), event.JobID(job)); err == nil {
		t.Fatal("the job has not left")
	}
	// A page is shown again until the archive is read.
	status, head, text := get(pages[0])
	if status != http.StatusServiceUnavailable || head.Get("Refresh") != "2" || head.Get("Retry-After") == "" ||
		!strings.Contains(text, "is in the archive, which is being read") {
		t.Errorf("while the archive is read: %d %v\n%s", status, head, text)
	}
	for _, path := range paths {
		for who, ask := range map[string]func(string, ...string) *http.Response{"read": reads, "bodies": all} {
			answer := ask(path)
			got := readAll(t, answer)
			if strings.HasPrefix(got, `{"id":"`+job) { // the job, which says that its payload left
				said := `,"payload_gone":"archived"`
				if !strings.Contains(got, said) {
					t.Errorf("%s for %s does not say that the payload left: %s", path, who, got)
				}
				got = noBodies.ReplaceAllString(strings.ReplaceAll(got, said, ""), "")
			}
			if answer.StatusCode != http.StatusOK || got != before[path] {
				t.Errorf("%s for %s: %s\n%.600s\nand before\n%.600s", path, who, answer.Status, got, before[path])
			}
		}
	}
	for _, path := range pages {
		status, head, text := get(path)
		for status == http.StatusServiceUnavailable && head.Get("Refresh") != "" { // of a host that is slow
			status, head, text = get(path)
		}
		got, want := growing.ReplaceAllString(text, ""), growing.ReplaceAllString(shown[path], "")
		if strings.HasPrefix(path, "/jobs/") { // without what can be done to it, logs, payload and result
			if !strings.Contains(got, "left the ledger with it; the archive has the digests.") {
				t.Errorf("%s does not say that the payload left", path)
			}
			_, got, _ = strings.Cut(got, "<h2>History</h2>")
			_, want, _ = strings.Cut(want, "<h2>History</h2>")
			got, _, _ = strings.Cut(got, "</tbody>")
			want, _, _ = strings.Cut(want, "</tbody>")
		}
		if status != http.StatusOK || got != want {
			a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Errorf("%s: %d\n%.600s\nbefore\n%.600s", path, status, a[i], b[i])
				}
			}
			if len(a) != len(b) {
				t.Errorf("%s: %d lines, before %d", path, len(a), len(b))
			}
		}
	}

	// A token for some queues gets what it got before, and not more.
	for _, path := range append(at("pos:900", ofJob...), ofJob...) {
		answer := ofMail(path)
		if strings.ReplaceAll(readAll(t, answer), `,"payload_gone":"archived"`, "") != before[path] {
			t.Errorf("%s for its queue: %s", path, answer.Status)
		}
		if answer := ofRender(path); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s for another queue: %s", path, answer.Status)
		}
	}
	// A payload that left is not there.
	if answer := all("/jobs/" + job + "/payload"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a payload that left: %s", answer.Status)
	}
	commandstest.Verify(t, s.Store)
}
