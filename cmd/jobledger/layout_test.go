package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/status"
)

// linesOfTable are those of t in a pipe.
func linesOfTable(t *words.Table) string {
	plain := func(_ words.Style, text string) string { return text }
	return strings.Join(slices.Collect(t.Lines(0, plain)), "\n")
}

func TestDiffMatrixHasStatesThatOccur(t *testing.T) {
	got := linesOfTable(print.DiffMatrix([]status.DiffCell{{To: event.Queued, Count: 2},
		{From: event.Queued, To: event.FailedState, Count: 10}}))
	want := "FROM    → QUEUED  → FAILED\n" +
		"–              2         0\n" +
		"queued         0        10"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFindingSaysWhere(t *testing.T) {
	for _, tt := range []struct {
		finding audit.Finding
		want    string
	}{
		{audit.Finding{Code: "V01", Detail: "it is wrong"}, "V01: it is wrong"},
		{audit.Finding{Code: "V02", Pos: 7, Job: "01K", Field: "state", Detail: "it is queued"},
			"V02 event 7 job 01K field state: it is queued"},
	} {
		if got := print.Finding(tt.finding); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestQueueSetSaysWhatWasSoAlready(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	q := projection.Queue{Name: "mail", Paused: true, Since: at, Actor: "cli:ada@build7", Reason: "smtp is down"}
	if got, want := print.QueueSet(q, true, true, "", time.UTC), "queue mail is paused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want := "queue mail is paused already, since 2026-05-04 12:00:00+00:00 by cli:ada@build7: smtp is down"
	if got := print.QueueSet(q, true, false, "", time.UTC); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	q.Paused, q.Reason = false, ""
	want = "queue mail was not paused; it was resumed at 2026-05-04 12:00:00+00:00 by cli:ada@build7"
	if got := print.QueueSet(q, true, false, "", time.UTC); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
