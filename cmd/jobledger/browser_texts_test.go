package main

import (
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// script is what a page must not carry out: it would be an error of the page.
const script = "<script>throw 'it ran'</script>"

// hostile is text of n bytes that changes the direction of writing, has a script and cannot be broken.
func hostile(n int) string {
	return "\u2066" + script + "\u202e" + strings.Repeat("W", n-len(script)-6)
}

// TestHostileTextInBrowser opens pages of a ledger in which each field that a producer, a worker or an
// operator sets has the longest text that it may have, with a script and a sign that turns the writing
// around: no script is carried out, and no page is wider than its window. TestProducerTextStaysInItsCell is
// about the direction of writing.
func TestHostileTextInBrowser(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	s := newScenario(t)
	ctx, queue := t.Context(), strings.Repeat("q", commands.MaxQueue)
	label := "<script>" + strings.Repeat("W", commands.MaxLabel-len("<script>"))
	actor, reason := hostile(commands.MaxActor), hostile(commands.MaxReason)
	who := event.Worker{Name: hostile(commands.MaxKey), Boot: "01KDY9FY88BT0000000000EVIL",
		Host: hostile(commands.MaxKey), PID: 1, Version: label}
	check(t, s.WorkerStarted(ctx, who, []string{queue}, []string{label}))
	var ids []event.JobID
	for i := range 4 {
		jobs, err := s.Enqueue(ctx, actor, commands.Enqueue{Queue: queue, MaxAttempts: 1, Version: label,
			Key: hostile(commands.MaxKey-1) + string(rune('a'+i)), Group: hostile(event.MaxGroup),
			Payload: []byte(hostile(5000)), Requires: []string{label},
			Tags: map[string]string{hostile(commands.MaxTag): hostile(commands.MaxTag), "a": "b"}})
		check(t, err)
		ids = append(ids, jobs[0].ID)
	}
	for i := range 3 {
		s.wait(time.Second)
		jobs, err := s.Claim(ctx, commands.ClaimRequest{Queues: []string{queue}, Worker: who,
			Version: label, Capabilities: []string{label}})
		check(t, err)
		if len(jobs) != 1 {
			t.Fatalf("%d jobs were claimed", len(jobs))
		}
		s.wait(time.Second)
		switch j := jobs[0]; i {
		case 0:
			s.do(actor, j, commands.Fail{Token: j.Token, Code: label, Detail: hostile(5000), NoRetry: true})
		case 1:
			s.do(actor, j, commands.Succeed{Token: j.Token, Result: []byte(hostile(5000))})
		}
	}
	_, err := s.Pause(ctx, actor, queue, reason)
	check(t, err)
	k := &schedule.Keeper{Service: s.Service, Actor: actor}
	_, _, err = k.Set(ctx, event.ScheduleSet{Name: queue, Queue: queue, Every: time.Hour, Payload: hostile(5000),
		Group: hostile(event.MaxGroup),
		Tags:  map[string]string{hostile(commands.MaxTag): hostile(commands.MaxTag)}},
		reason)
	check(t, err)
	now := func() time.Time { return s.Now }
	job := "/jobs/" + string(ids[0])
	_, get := serveOn(t, s.Store, now)
	for _, path := range []string{"/", job, "/jobs", "/failures", "/workers", "/lanes", "/queues/" + queue,
		"/schedules/" + queue, "/schedules/" + queue + "/edit", "/events", "/tail", "/diff?from=pos:1", "/incident",
		"/jobs?" + url.Values{"find": {hostile(200)}}.Encode()} {
		status, _, text := get(path)
		if status != 200 || strings.Contains(text, script) || !strings.Contains(text, html.EscapeString(script)) {
			t.Errorf("%s: %d, or it has the text as it is, or not at all", path, status)
		}
	}
	browse(t, browserTask{Link: <-serveStore(t, s.Store, now).links, Pages: []string{job}})
	s.Verify()
}
