package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/nighttest"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
)

// TestActsFoldSpreadRetries: a retry of many jobs that is spread is one act, and what others did before it is
// shown or counted.
func TestActsFoldSpreadRetries(t *testing.T) {
	const jobs = 520
	s := commandstest.New(t)
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var all []event.JobID
	for range jobs {
		made, err := s.Enqueue(ctx, "cli:shop", commands.Enqueue{Queue: "sms", MaxAttempts: 1})
		check(err)
		all = append(all, made[0].ID)
		_, err = s.Apply(ctx, "cli:shop", made[0].ID, commands.Cancel{Reason: "gateway"})
		check(err)
	}
	s.Now = s.Now.Add(time.Hour)
	_, err := s.Pause(ctx, "cli:ada", "mail", "first")
	check(err)
	s.Now = s.Now.Add(time.Second)
	for i, id := range all {
		_, err := s.Apply(ctx, "http:root", id, commands.Retry{Reason: "ticket 12"})
		check(err)
		_, err = s.Apply(ctx, "http:root", id, commands.Reschedule{Reason: "ticket 12",
			RunAt: new(s.Now.Add(time.Duration(i+1) * time.Second / 2))})
		check(err)
	}
	later := s.Now.Add(time.Hour)
	_, err = s.Apply(ctx, "http:root", all[0], commands.Reschedule{Reason: "other", RunAt: &later})
	check(err)
	wantActs(t, s, 8, "rescheduled a job; retried 520 jobs, spread over 4m19s; paused mail; "+
		"cancelled 520 jobs", "")
	wantActs(t, s, 2, "rescheduled a job; retried 520 jobs, spread over 4m19s", "and 2 more before")
}

func readActs(t *testing.T, s *commandstest.Scenario, most int) (acts Acts) {
	t.Helper()
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		acts, err = OperatorActs(t.Context(), tx, ledger.Filter{}, most)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return acts
}

func wantActs(t *testing.T, s *commandstest.Scenario, most int, want, rest string) {
	t.Helper()
	acts := readActs(t, s, most)
	var words []string
	for _, a := range acts.List {
		words = append(words, a.Words())
	}
	if got := strings.Join(words, "; "); got != want || acts.Rest() != rest {
		t.Errorf("got  %s, %q\nwant %s, %q", got, acts.Rest(), want, rest)
	}
}

// TestFindingsHostWithOthers: a host whose other worker lived on has not fallen silent, also where only one
// of its workers, or one queue, is asked for.
func TestFindingsHostWithOthers(t *testing.T) {
	s := nighttest.Import(t)
	found := make(map[string]string)
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		from, err := projection.AtTime(t.Context(), tx, time.Date(2026, 3, 14, 23, 30, 0, 0, time.UTC))
		if err != nil {
			return err
		}
		to, err := projection.AtTime(t.Context(), tx, time.Date(2026, 3, 15, 4, 0, 0, 0, time.UTC))
		if err != nil {
			return err
		}
		for _, asked := range []query.Span{{}, {Worker: "alpha-render"}, {Queue: "render"},
			{Worker: "charlie-mail"}} {
			span := Span{Span: asked, Columns: 1200}
			span.From, span.To = from, to
			lanes, err := ReadLanes(t.Context(), tx, span)
			if err != nil {
				return err
			}
			findings, err := lanes.Findings(t.Context(), tx, span, time.UTC)
			if err != nil {
				return err
			}
			for _, f := range findings {
				if f.Kind == "silent" || f.Kind == "dead_host" {
					found[fmt.Sprintf("%s%s: %s", span.Worker, span.Queue, strings.SplitN(f.Text, " at ", 2)[0])] = f.Kind
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, kind := range map[string]string{
		": Host charlie (charlie-mail, charlie-render) fell silent": "dead_host",
		": alpha-render fell silent":                                "silent",
		"alpha-render: alpha-render fell silent":                    "silent",
		"render: alpha-render fell silent":                          "silent",
		"render: bravo-render fell silent":                          "silent",
	} {
		if found[text] != kind {
			t.Errorf("%s: %q, want %q", text, found[text], kind)
		}
	}
	if t.Failed() {
		t.Log(found)
	}
}
