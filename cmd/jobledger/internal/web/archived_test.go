package web

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
)

// Where events have left the ledger for an archive that serve knows, an export has them; otherwise the answer
// names the file that does.
func TestArchivedEventsAreExportedOrNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "old")
	s := serveWith(t, "127.0.0.1:0", func(c *Config) { c.Archive = dir })
	service := &commands.Service{Store: s.Store}
	who := event.Worker{Name: "w", Boot: "01KDY9FY88TH00000000000011"}
	jobs, err := service.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: who})
	if err == nil {
		_, err = service.Apply(t.Context(), "worker:w", jobs[0].ID, commands.Succeed{Token: jobs[0].Token})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.enqueue("mail", 2*proof.BlockSize)
	for hi := int64(proof.BlockSize); hi <= 2*proof.BlockSize; hi += proof.BlockSize {
		_, err := archive.Close(t.Context(), service, hi, archive.Options{Dir: dir, Actor: "cli:test",
			Most: proof.BlockSize})
		if err != nil {
			t.Fatal(err)
		}
	}
	token := s.create("all", []string{"*"}, access.Scopes...)
	export := func(window string) (*http.Response, string) {
		return s.do("GET", "/api/v1/export"+window, nil, "Authorization", token)
	}
	var middle string // a moment that is archived
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		e, _, err := tx.EventAt(t.Context(), 3)
		middle = url.QueryEscape(event.FormatTime(e.At))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	windows := []string{"?to=pos:512", "?from=pos:2&to=pos:400", "?bodies=true&to=pos:300",
		"?format=jsonl&from=pos:256&to=pos:260", "?from=" + middle + "&to=pos:9", "?to=" + middle,
		"?from=2000-01-01T00:00:00Z&to=" + middle}
	before := make(map[string]string)
	for _, window := range windows {
		if _, before[window] = export(window); before[window] == "" {
			t.Fatalf("%s selects nothing", window)
		}
	}
	removal := &archive.Removal{Service: service, Dir: dir, Actor: "cli:test", KeepBodies: true}
	s.Store.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if done, _, err := removal.Step(t.Context()); err != nil || done.Jobs != 1 {
		t.Fatal(done, err)
	}
	// With the archive, an export is what it was before, and names a file that is not there.
	for _, window := range windows {
		if answer, body := export(window); answer.StatusCode != 200 || body != before[window] {
			t.Errorf("%s: %s %.300s\nand before %.300s", window, answer.Status, body, before[window])
		}
	}
	if err := os.Rename(dir, dir+"er"); err != nil {
		t.Fatal(err)
	}
	answer, body := export("?to=pos:9")
	if answer.StatusCode != 404 || !strings.Contains(body, "the events 1 to 256") ||
		!strings.Contains(body, "0000000000-0000000256.jsonl.gz") {
		t.Errorf("without a file: %s %s", answer.Status, body)
	}
	s.api.Archive = ""
	for path, file := range map[string]string{"/attempts": "0000000000-0000000256.jsonl.gz",
		"/attempts?at=pos:200": "0000000000-0000000256.jsonl.gz", "/export": "0000000000-0000000256.jsonl.gz",
		"/attempts?from=pos:301&to=pos:400":   "0000000256-0000000512.jsonl.gz",
		"/export?to=pos:9":                    "0000000000-0000000256.jsonl.gz",
		"/export?format=csv&from=pos:400":     "0000000256-0000000512.jsonl.gz",
		"/attempts?from=2000-01-01T00:00:00Z": "0000000000-0000000256.jsonl.gz"} {
		answer, body := s.do("GET", "/api/v1"+path, nil, "Authorization", token)
		if answer.StatusCode != 404 || !strings.Contains(body, `"code":"archived","exit":3`) ||
			!strings.Contains(body, "in the file "+file+" of its archive") {
			t.Errorf("%s: %s %s", path, answer.Status, body)
		}
	}
	answer, body = s.do("GET", "/api/v1/export?from=pos:513", nil, "Authorization", token)
	if answer.StatusCode != 200 {
		t.Errorf("what is in the ledger: %s %.300s", answer.Status, body)
	}
	commandstest.Verify(t, s.Store)
}
