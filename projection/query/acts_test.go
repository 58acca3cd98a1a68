package query_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
	wantActs(t, s, 8, "rescheduled 1 0s; retried 520 4m19s; queue_paused mail 1 0s; cancelled 520 0s", 0)
	wantActs(t, s, 2, "rescheduled 1 0s; retried 520 4m19s", 2)
}

func wantActs(t *testing.T, s *commandstest.Scenario, most int, want string, more int) {
	t.Helper()
	var acts query.ActList
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		span := query.Span{To: projection.Now(s.Now)}
		acts, err = query.Acts{Span: span, Limit: most}.Read(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, a := range acts.List {
		what := strings.TrimSpace(a.Kind().String() + " " + a.About())
		words = append(words, fmt.Sprint(what, " ", a.Count, " ", a.Spread.Truncate(time.Second)))
	}
	if got := strings.Join(words, "; "); got != want || acts.More != more {
		t.Errorf("got  %s, %d more\nwant %s, %d more", got, acts.More, want, more)
	}
}
