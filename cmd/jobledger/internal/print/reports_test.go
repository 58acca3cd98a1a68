package print

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	_ "jobledger/ledger/ledgertest" // the flags of all tests
	"jobledger/projection/query"
)

var (
	noon   = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	mailer = event.Worker{Name: "alpha-mail-west", Host: "alpha.example.com", PID: 4_194_303,
		Version: "2026.5.4",
		Boot:    "01KY0000000000000000000000"}
)

// wideRows are rows of each report, as wide as they are in a busy ledger.
var wideRows = map[string][]any{
	"taken": {noon, "01KY0000000000000000000000", "thumbnails", int64(12), mailer.Name, event.LeaseExpired,
		mailer.Name, noon.Add(time.Hour), time.Hour, "open"},
	"silent": {noon, mailer.Name, mailer.Host, int64(mailer.PID), mailer.Boot, int64(12345), int64(1234)},
	"poison": {"01KY0000000000000000000000", "thumbnails", int64(12), int64(10),
		[]string{"alpha-mail", "beta-mail", "gamma-mail"}, noon, event.SucceededState},
	"failures": {"connection_reset_by_peer", int64(1234567), int64(123456), noon, noon},
	"failures --cause": {"f1-0123456789ab", "thumbnails", "connection_reset_by_peer", int64(139), "SIGSEGV",
		"the connection to the host … was reset after …", int64(1234567), int64(12345678), int64(123456),
		int64(12345), noon, noon},
	"longest": {"01KY0000000000000000000000", int64(12), "thumbnails", mailer.Name, noon, 24 * time.Hour,
		"succeeded", true},
	"costly": {"01KY0000000000000000000000", int64(12), "thumbnails", mailer.Name, noon, 24 * time.Hour,
		123 * time.Hour, int64(123_400_000_000), "succeeded"},
	"depth": {noon, "thumbnails", int64(1234567), int64(12345)},
	"waits": WaitRow(query.Wait{Queue: "thumbnails", Claims: 1234567, P50: time.Hour, P99: 2 * time.Hour,
		Max: 24 * time.Hour}),
	"causes":   {"thumbnails", "worker", int64(1234567), 24 * time.Hour, 24 * time.Hour, 24 * time.Hour},
	"recovery": WaitRow(query.Wait{Queue: "thumbnails", Claims: 1234567, P50: time.Hour, Max: 24 * time.Hour}),
	"left": {noon, "archived", "cli:operator@alpha.example.com", "thumbnails", int64(1234567), int64(1234567),
		int64(12345), int64(12345), "01KY0000000000000000000000"},
	"acts": {int64(1234567), noon, "cli:operator@alpha.example.com", "queue_paused", "thumbnails", int64(123456),
		"the provider is down, ticket 4711"},
	"clocks":  {mailer.Name, mailer.Host, int64(mailer.PID), time.Hour, int64(123456), noon, noon},
	"backlog": {"01KY0000000000000000000000", "thumbnails", noon, event.SucceededState, event.SucceededState},
}

func TestTableOfEachReportFits80Columns(t *testing.T) {
	unpainted := func(_ words.Style, text string) string { return text }
	for _, r := range append(slices.Clone(Reports), FailuresByCause) {
		row := wideRows[r.Name]
		if row == nil {
			t.Errorf("%s: no row in the test", r.Name)
			continue
		}
		for line := range r.Table([][]any{row}, time.UTC).Lines(80, unpainted) {
			if n := uniseg.StringWidth(line); n > 80 {
				t.Errorf("%s: a line of %d columns: %q", r.Name, n, line)
			}
		}
		wide := ""
		for line := range r.Table([][]any{row}, time.UTC).Widened(true).Lines(80, unpainted) {
			wide += line + "\n"
		}
		for i, name := range r.Columns {
			title := strings.ToUpper(strings.ReplaceAll(name, "_", " "))
			if text := cell(name, row[i], time.UTC); !strings.Contains(wide, title) || !strings.Contains(wide, text) {
				t.Errorf("%s: the wide table has no %s %q:\n%s", r.Name, title, text, wide)
			}
		}
	}
}

func TestWriteCSVEscapesFormulas(t *testing.T) {
	r, _ := ReportNamed("failures")
	var b strings.Builder
	rows := [][]any{{"=1+1", int64(2), int64(1), noon, time.Time{}}, {`a,"b"`, int64(0), int64(0), time.Time{},
		time.Time{}}}
	if err := r.WriteCSV(&b, rows); err != nil {
		t.Fatal(err)
	}
	want := "code,count,jobs,first,last\n'=1+1,2,1,2026-05-04T12:00:00.000000Z,\n\"a,\"\"b\"\"\",0,0,,\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestRowJSONHasNullWhereNothingIsKnown(t *testing.T) {
	tests := []struct {
		report string
		row    []any
		want   string
	}{
		{"failures", []any{"", int64(2), int64(0), time.Time{}, time.Time{}},
			`{"code":null,"count":2,"jobs":0,"first":null,"last":null}`},
		{"waits", []any{"mail", int64(3), 500 * time.Millisecond, time.Second, -time.Second},
			`{"queue":"mail","claims":3,"p50":0.5,"p99":1,"max":null}`},
		{"backlog", []any{"J", "mail", noon, event.Queued, event.State(0)},
			`{"job":"J","queue":"mail","enqueued":"2026-05-04T12:00:00.000000Z","state":"queued","state_now":null}`},
	}
	for _, tt := range tests {
		r, _ := ReportNamed(tt.report)
		got, err := r.RowJSON(tt.row).MarshalJSON()
		if err != nil || string(got) != tt.want {
			t.Errorf("got %s, %v, want %s", got, err, tt.want)
		}
	}
}
