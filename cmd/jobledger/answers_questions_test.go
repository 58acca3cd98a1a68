package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/testdata/oracletest"
)

// asking is what is asked of a history.
type asking struct {
	moments   []string
	positions []string // those of the moments that name one
	windows   [][2]string
}

// momentsOf chooses moments and windows of a history: at its ends, near them, and spread over it, by position
// and by time, where several events have one time, and where nothing happened.
func momentsOf(l *oracletest.Ledger) (m asking) {
	n := int64(answersSize(2, 14))
	tail := l.Tail()
	pos := func(p int64) string { return fmt.Sprintf("pos:%d", max(1, min(p, tail))) }
	for i := range n {
		p := tail * (2*i + 1) / (2 * n)
		m.positions = append(m.positions, pos(p))
		at := l.Events[p].At.Add(time.Duration(i%2) * 500 * time.Millisecond)
		m.moments = append(m.moments, pos(p), at.Format(time.RFC3339Nano))
	}
	m.positions = append(m.positions, pos(tail-1), pos(tail-tail/12))
	m.moments = append(m.moments, pos(tail), pos(tail-1), pos(tail-tail/12), pos(1))
	slices.Reverse(m.positions)
	slices.Reverse(m.moments)
	m.windows = append(m.windows, [2]string{"", ""}, [2]string{pos(tail / 2), ""}, [2]string{"", pos(tail / 3)},
		[2]string{l.Events[0].At.Add(-time.Minute).Format(time.RFC3339),
			l.Events[tail-1].At.Format(time.RFC3339Nano)})
	k := int64(answersSize(1, 14))
	for i := range k {
		from := tail * (2*i + 1) / (2 * k)
		to := min(tail-1, from+tail/(3+i%3))
		m.windows = append(m.windows, [2]string{pos(from), pos(to)}, [2]string{
			l.Events[from].At.Add(time.Millisecond / 2).Format(time.RFC3339Nano),
			l.Events[to].At.Add(time.Millisecond / 2).Format(time.RFC3339Nano)})
	}
	begins := func(kind string) { // a window that begins with an event that counts
		for _, e := range l.Events {
			if _, because := e.Data["because"]; e.Kind == kind && e.Pos > tail/5 && !because {
				m.windows = append(m.windows, [2]string{pos(e.Pos), pos(e.Pos + tail/5)})
				return
			}
		}
	}
	begins("failed")
	begins("cancelled")
	return m
}

// questionsAt is what is asked about a moment, and about some jobs then; at "": about now.
func questionsAt(l *oracletest.Ledger, at string) (all []question) {
	past := at != ""
	verb := func(words ...string) []string {
		if past {
			words = append(words, "--as-of", at)
		}
		return words
	}
	api := func(path string, pairs ...string) string {
		if past {
			pairs = append(pairs, "at", at)
		}
		return withQuery(path, pairs...)
	}
	add := func(q question) { all = append(all, q) }
	add(question{name: "status", words: verb("status"), path: api("/status"),
		want: func(l *oracletest.Ledger) []oracletest.Row { return l.Status(l.At(at), past) }})
	add(question{name: "queues", words: verb("queues"), path: api("/queues"),
		want: func(l *oracletest.Ledger) []oracletest.Row { return l.Queues(l.At(at)) }})
	add(question{name: "workers", words: verb("workers", "--all"), path: api("/workers", "all", "true"),
		want: func(l *oracletest.Ledger) []oracletest.Row { return l.Workers(l.At(at)) }})
	list := func(name string, f oracletest.Filter) {
		words, pairs := []string{"list", "--limit", fmt.Sprint(f.Limit)}, []string{"limit", fmt.Sprint(f.Limit)}
		for _, state := range f.States {
			words, pairs = append(words, "--state", state), append(pairs, "state", state)
		}
		if f.Queue != "" {
			words, pairs = append(words, "--queue", f.Queue), append(pairs, "queue", f.Queue)
		}
		if f.Code != "" {
			words, pairs = append(words, "--error", f.Code), append(pairs, "error", f.Code)
		}
		if f.Limit == 0 {
			pairs[1] = "50"
		}
		q := question{name: name, paged: f.Limit == 0, words: verb(words...), path: api("/jobs", pairs...),
			want: func(l *oracletest.Ledger) []oracletest.Row { return l.List(f, l.At(at), past) }}
		if !past {
			q.goes = func(ctx context.Context, s *commands.Service) (any, error) { return listByGo(ctx, s, f) }
		}
		add(q)
	}
	list("list", oracletest.Filter{Limit: 150})
	list("list --state", oracletest.Filter{States: []string{"queued", "claimed", "running", "blocked"}})
	list("list --state", oracletest.Filter{States: []string{"cancelled", "failed"}, Limit: 40})
	list("list --error", oracletest.Filter{Code: "smtp", Queue: "mail", Limit: 40})
	for _, id := range someJobs(l, at) {
		add(question{name: "show", words: verb("show", id),
			want: func(l *oracletest.Ledger) []oracletest.Row { return l.Show(id, l.At(at), past) }})
		add(question{name: "show", path: api("/jobs/" + id),
			want: func(l *oracletest.Ledger) (rows []oracletest.Row) {
				for _, r := range l.Show(id, l.At(at), past) {
					return []oracletest.Row{r}
				}
				return nil
			}})
		add(question{name: "why", words: verb("why", id), path: api("/jobs/" + id + "/why"),
			want: func(l *oracletest.Ledger) []oracletest.Row { return l.Why(id, l.At(at)) }})
		if past {
			add(question{name: "owner", words: verb("owner", id), path: api("/jobs/" + id + "/owner"),
				want: func(l *oracletest.Ledger) []oracletest.Row { return l.Owner(id, l.At(at)) }})
			continue
		}
		add(question{name: "history", words: []string{"history", id}, path: "/jobs/" + id + "/events",
			goes: func(ctx context.Context, s *commands.Service) (any, error) {
				return s.History(ctx, event.JobID(id))
			},
			want: func(l *oracletest.Ledger) []oracletest.Row { return l.History(id, l.At("")) }})
		add(question{name: "attempts --job", words: []string{"attempts", "--job", id},
			path: "/jobs/" + id + "/attempts",
			want: func(l *oracletest.Ledger) (rows []oracletest.Row) { return l.AttemptsOf(id) }})
	}
	return all
}

// listByGo is what Service.List returns, in the names of list.
func listByGo(ctx context.Context, s *commands.Service, f oracletest.Filter) (rows []oracletest.Row,
	err error) {
	asked := projection.Filter{Error: f.Code, Limit: f.Limit}
	for _, name := range f.States {
		state, err := event.ParseState(name)
		if err != nil {
			return nil, err
		}
		asked.States = append(asked.States, state)
	}
	if f.Queue != "" {
		asked.Queues = []string{f.Queue}
	}
	jobs, err := s.List(ctx, asked)
	for _, j := range jobs {
		text, err := json.Marshal(words.ToJSON(j))
		if err != nil {
			return nil, err
		}
		var r oracletest.Row
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, err
}

// someJobs are jobs of different kinds at a moment: in each state the newest one, and one that had waited.
func someJobs(l *oracletest.Ledger, at string) (ids []string) {
	byState := make(map[string]string)
	for _, r := range l.List(oracletest.Filter{}, l.At(at), false) {
		state, _ := r["state"].(string)
		if id, _ := r["id"].(string); byState[state] == "" {
			byState[state] = id
		}
	}
	for _, state := range slices.Sorted(maps.Keys(byState)) {
		ids = append(ids, byState[state])
	}
	if others() {
		var more []string
		for i := 1; i < len(ids); i += 4 {
			more = append(more, ids[i])
		}
		ids = more
	} else {
		ids = ledgertest.Sample(ids, answersSize(4, 7))
	}
	m, last := l.At(at), "" // the job of the last event up to then
	for _, e := range l.Events {
		if e.Pos <= m.Pos && e.Job != "" {
			last = e.Job
		}
	}
	if last != "" && !slices.Contains(ids, last) {
		ids = append(ids, last)
	}
	return ids
}

// withQuery is the path with parameters, given as names and values.
func withQuery(path string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		query.Add(pairs[i], pairs[i+1])
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// questionsWithin is what is asked about the window from one moment to another, both included; "": from the
// first event, to now.
func questionsWithin(from, to string) (all []question) {
	add := func(q question, pairs ...string) {
		for _, end := range [][2]string{{"from", from}, {"to", to}} {
			if end[1] == "" {
				continue
			}
			if q.words != nil {
				q.words = append(q.words, "--"+end[0], end[1])
			}
			pairs = append(pairs, end[0], end[1])
		}
		if q.path != "" {
			q.path = withQuery(q.path, pairs...)
		}
		all = append(all, q)
	}
	within := func(answer func(*oracletest.Ledger, oracletest.Window) []oracletest.Row) func(
		*oracletest.Ledger) []oracletest.Row {
		return func(l *oracletest.Ledger) []oracletest.Row { return answer(l, l.Between(from, to)) }
	}
	report := func(name string, want func(*oracletest.Ledger, oracletest.Window) []oracletest.Row,
		flags ...string) {
		add(question{name: "report " + name, words: append([]string{"report", name}, flags...), want: within(want)})
	}
	report("waits", (*oracletest.Ledger).Waits)
	add(question{name: "report depth", words: []string{"report", "depth", "--every", "10m"},
		want: within(func(l *oracletest.Ledger, w oracletest.Window) []oracletest.Row {
			return l.Depth(w, 10*time.Minute)
		}),
		keeps: func(_ *oracletest.Ledger, r oracletest.Row) bool { // a queue without jobs may have a row
			queued, _ := r["queued"].(float64)
			holds, _ := r["held"].(float64)
			return queued+holds > 0
		}})
	// Whether a process is silent already that acted a moment ago depends on its leases and on its presence, of
	// which an export says nothing.
	add(question{name: "report silent", words: []string{"report", "silent"},
		want: within((*oracletest.Ledger).Silent),
		keeps: func(l *oracletest.Ledger, r oracletest.Row) bool {
			last, _ := r["last_sign_of_life"].(string)
			return last < l.Now.Add(-2*time.Minute).Format(time.RFC3339)
		}})
	report("failures", func(l *oracletest.Ledger, w oracletest.Window) []oracletest.Row { return l.Codes(w) })
	report("failures", func(l *oracletest.Ledger, w oracletest.Window) []oracletest.Row {
		return l.Codes(w, "released", "reclaimed")
	}, "--outcome", "released", "--outcome", "reclaimed")
	report("longest", func(l *oracletest.Ledger, w oracletest.Window) []oracletest.Row {
		return l.Longest(w, 20)
	}, "--limit", "20")
	for _, by := range []string{"cpu", "max_rss"} {
		report("costly", func(l *oracletest.Ledger, w oracletest.Window) []oracletest.Row {
			return l.Costly(w, by == "max_rss", 20)
		}, "--by", by, "--limit", "20")
	}
	report("taken", (*oracletest.Ledger).Taken)
	report("recovery", (*oracletest.Ledger).Recovery)
	report("acts", func(l *oracletest.Ledger, w oracletest.Window) []oracletest.Row {
		rows := l.Acts(w)
		for _, r := range rows {
			if r["reason"] == "" {
				r["reason"] = nil
			}
		}
		return rows
	})
	report("causes", (*oracletest.Ledger).Causes)
	report("poison", (*oracletest.Ledger).Poison)
	report("backlog", func(l *oracletest.Ledger, w oracletest.Window) []oracletest.Row {
		return l.Backlog(w, 5*time.Minute)
	}, "--after", "5m")
	attempts := func(outcomes ...string) {
		words, pairs := []string{"attempts"}, []string{"limit", "50"}
		for _, o := range outcomes {
			words, pairs = append(words, "--outcome", o), append(pairs, "outcome", o)
		}
		add(question{name: "attempts", words: words, path: "/attempts", paged: true,
			want: within(func(l *oracletest.Ledger, w oracletest.Window) []oracletest.Row {
				return l.Attempts(w, l.At(""), outcomes...)
			})}, pairs...)
	}
	attempts("failed", "reclaimed", "open")
	attempts("cancelled", "released")
	add(question{name: "events", words: []string{"events", "--kind", "failed"}, path: "/events", paged: true,
		want: within(func(l *oracletest.Ledger, w oracletest.Window) []oracletest.Row {
			return l.EventsOf(w, "failed")
		})}, "kind", "failed", "limit", "50")
	if from == "" || to == "" { // without them the window of the API is another one
		return all
	}
	ends := func(answer func(l *oracletest.Ledger, from, to oracletest.Moment) []oracletest.Row) func(
		*oracletest.Ledger) []oracletest.Row {
		return func(l *oracletest.Ledger) []oracletest.Row { return answer(l, l.At(from), l.At(to)) }
	}
	add(question{name: "diff", words: []string{"diff"}, path: "/diff",
		want: ends(func(l *oracletest.Ledger, from, to oracletest.Moment) []oracletest.Row {
			return l.Diff(from, to, 5)
		})})
	add(question{name: "series", path: "/series",
		want: ends(func(l *oracletest.Ledger, from, to oracletest.Moment) []oracletest.Row {
			return l.Series(from, to, "mail", 7*time.Minute)
		})}, "queue", "mail", "step", "7m")
	add(question{name: "depth", path: "/depth",
		want: ends(func(l *oracletest.Ledger, from, to oracletest.Moment) []oracletest.Row {
			return l.Points(from, to, 12, "")
		})}, "px", "12")
	begins := "" // a position that the window begins with
	if strings.HasPrefix(from, "pos:") {
		begins = " from pos:N"
	}
	add(question{name: "failures" + begins, path: "/failures", items: "items",
		want: within((*oracletest.Ledger).Failures)})
	add(question{name: "acts" + begins, path: "/lanes", items: "acts",
		want: within((*oracletest.Ledger).Acts)}, "px", "500")
	return all
}
