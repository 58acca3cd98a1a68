package report

import (
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger/event"
	_ "jobledger/ledger/ledgertest" // the flags of all tests
	"jobledger/projection/attempts"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

var (
	noon   = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	mailer = event.Worker{Name: "alpha-mail-west", Host: "alpha.example.com", PID: 4_194_303,
		Version: "2026.5.4",
		Boot:    "01KY0000000000000000000000"}
)

// wideRows are rows of each report, as wide as they are in a busy ledger.
var wideRows = map[string]Row{
	"taken": TakenJob{At: noon, Job: "01KY0000000000000000000000", Queue: "thumbnails", Attempt: 12,
		From:   mailer,
		Reason: event.LeaseExpired, Next: attempts.Attempt{Pos: 9, Worker: mailer, ClaimedAt: noon.Add(time.Hour)}},
	"silent": SilentWorker{query.SilentWorker{Taken: 12345, Holds: 1234,
		LostWorker: status.LostWorker{Worker: status.Worker{Worker: mailer, SeenAt: noon}}}},
	"poison": PoisonJob{Job: "01KY0000000000000000000000", Taken: 12, Processes: 10, Last: noon,
		Queue:   "thumbnails",
		Workers: []string{"alpha-mail", "beta-mail", "gamma-mail"}, State: event.SucceededState},
	"failures": Failure{Code: "connection_reset_by_peer", Count: 1234567, Jobs: 123456, First: noon, Last: noon},
	"longest": LongAttempt{Job: "01KY0000000000000000000000", Attempt: 12, Queue: "thumbnails", Worker: mailer,
		Claimed: noon, Lasted: 24 * time.Hour, Outcome: event.KindSucceeded},
	"depth": QueueDepth{Minute: noon, Queue: "thumbnails", Queued: 1234567, Held: 12345},
	"waits": QueueWait{Queue: "thumbnails", Claims: 1234567, P50: time.Hour, P99: 2 * time.Hour,
		Max: 24 * time.Hour},
	"backlog": LateJob{Job: "01KY0000000000000000000000", Queue: "thumbnails", Enqueued: noon,
		Then: event.SucceededState,
		Now:  event.SucceededState},
}

func TestTableOfEachReportFits80Columns(t *testing.T) {
	unpainted := func(_ render.Style, text string) string { return text }
	for _, r := range All {
		row := wideRows[r.Name]
		if row == nil {
			t.Errorf("%s: no row in the test", r.Name)
			continue
		}
		for line := range Table(r, []Row{row}, time.UTC).Lines(80, unpainted) {
			if n := uniseg.StringWidth(line); n > 80 {
				t.Errorf("%s: a line of %d columns: %q", r.Name, n, line)
			}
		}
		wide := ""
		for line := range Table(r, []Row{row}, time.UTC).Widened(true).Lines(80, unpainted) {
			wide += line + "\n"
		}
		for _, f := range row.Fields() {
			title := strings.ToUpper(strings.ReplaceAll(f.Name, "_", " "))
			if !strings.Contains(wide, title) || !strings.Contains(wide, cell(f, time.UTC)) {
				t.Errorf("%s: the wide table has no %s %q:\n%s", r.Name, title, cell(f, time.UTC), wide)
			}
		}
	}
}

func TestWriteCSVEscapesFormulas(t *testing.T) {
	r, _ := Named("failures")
	var b strings.Builder
	rows := []Row{Failure{Code: "=1+1", Count: 2, Jobs: 1, First: noon}, Failure{Code: `a,"b"`}}
	if err := WriteCSV(&b, r, rows); err != nil {
		t.Fatal(err)
	}
	want := "code,count,jobs,first,last\n'=1+1,2,1,2026-05-04T12:00:00.000000Z,\n\"a,\"\"b\"\"\",0,0,,\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestRowJSONHasNullWhereNothingIsKnown(t *testing.T) {
	tests := []struct {
		row  Row
		want string
	}{
		{Failure{Count: 2}, `{"code":null,"count":2,"jobs":0,"first":null,"last":null}`},
		{QueueWait{Queue: "mail", Claims: 3, P50: 500 * time.Millisecond, P99: time.Second, Max: time.Minute},
			`{"queue":"mail","claims":3,"p50":0.5,"p99":1,"max":60}`},
		{LateJob{Job: "J", Queue: "mail", Enqueued: noon, Then: event.Queued},
			`{"job":"J","queue":"mail","enqueued":"2026-05-04T12:00:00.000000Z","state":"queued","state_now":null}`},
	}
	for _, tt := range tests {
		got, err := RowJSON(tt.row).MarshalJSON()
		if err != nil || string(got) != tt.want {
			t.Errorf("got %s, %v, want %s", got, err, tt.want)
		}
	}
}
