package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/apitest"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// ticking is a ledger with schedules whose ticks became all that a tick can become, in so many minutes.
func ticking(t *testing.T, minutes int) *scenario {
	t.Helper()
	s := newScenario(t)
	k := &schedule.Keeper{Service: s.Service, Actor: "cli:ada@build7"}
	set := func(spec event.ScheduleSet, reason string) {
		t.Helper()
		_, _, err := k.Set(t.Context(), spec, reason)
		check(t, err)
	}
	none := time.Duration(0)
	set(event.ScheduleSet{Name: "poll-orders", Queue: "api", Every: 5 * time.Minute, Payload: "secret",
		MaxAttempts: 2}, "orders come late")
	set(event.ScheduleSet{Name: "digest", Queue: "reports", Cron: "*/15 * * * *", Zone: "Europe/Berlin",
		Overlap: event.OverlapAllow}, "")
	set(event.ScheduleSet{Name: "nightly", Queue: "backup", Cron: "30 2 * * *", Zone: "Europe/Berlin"}, "")
	set(event.ScheduleSet{Name: "weekly", Queue: "reports", Cron: "0 7 * * mon", Zone: "Europe/Berlin"}, "")
	_, _, err := k.Suspend(t.Context(), "weekly", "it is not read in November")
	check(t, err)
	ticker := schedule.Ticker{Service: s.Service, Actor: "sweeper:w7", Pause: time.Nanosecond}
	claim := func(queue string) projection.Job {
		s.wait(time.Second)
		return s.claim("w1", queue)
	}
	for i := range minutes {
		s.wait(time.Minute)
		if i == minutes/2 { // its jobs go elsewhere from here on
			set(event.ScheduleSet{Name: "digest", Queue: "digests", Cron: "*/10 * * * *", Zone: "Europe/Berlin",
				Overlap: event.OverlapAllow}, "every ten minutes is enough")
		}
		done, err := ticker.Tick(t.Context())
		check(t, err)
		for _, made := range done.Jobs {
			j := claim(made.Queue)
			fail := commands.Fail{Token: j.Token, Code: "exit_code", Detail: "no", RetryIn: &none}
			switch n := made.Tick.Minute() / 5; {
			case made.Queue == "api" && n%4 == 1: // it succeeds after a retry
				if s.do("worker:w1", j, fail).State == event.Queued {
					j = claim(made.Queue)
					s.do("worker:w1", j, commands.Succeed{Token: j.Token})
				}
			case made.Queue == "api" && n%4 == 2: // it holds up the next tick
				s.do("worker:w1", j, commands.Heartbeat{Token: j.Token, Lease: 6 * time.Minute})
				s.wait(5 * time.Minute)
				_, err := ticker.Tick(t.Context())
				check(t, err)
				s.do("worker:w1", j, commands.Succeed{Token: j.Token})
			case made.Queue != "api" && n%4 == 0:
				for s.do("worker:w1", j, fail).State != event.FailedState {
					j = claim(made.Queue)
					fail.Token = j.Token
				}
			case made.Queue != "api" && n%4 == 2:
				s.do("cli:ada@build7", j, commands.Cancel{Reason: "not today"})
			case i == minutes-1: // it runs still
			default:
				s.do("worker:w1", j, commands.Succeed{Token: j.Token})
			}
		}
	}
	s.enqueue(commands.Enqueue{Queue: "api", Key: "poll-orders@2099-01-01T00:00:00Z"}) // it is of no schedule
	return s
}

// tickRow is a row of GET /schedules/NAME/ticks.
type tickRow struct {
	Tick, To, Outcome string
	Count, Pos        int64
	Job, State, Why   *string
}

// ticksByEvents are the last ticks of a schedule by the event pos, as its events alone say: the newest first.
func ticksByEvents(t *testing.T, s *scenario, name string, pos int64, last int) (rows []tickRow) {
	t.Helper()
	jobs, tries := make(map[int64]int), make(map[int64]int)
	read := func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{Until: pos}) {
			check(t, err)
			i, ours := jobs[e.N]
			switch b := e.Body.(type) {
			case *event.Enqueued:
				if b.Schedule == name && !b.Tick.IsZero() {
					jobs[e.N] = len(rows)
					state, id, at := "queued", string(e.Job), event.FormatTime(b.Tick)
					rows = append(rows, tickRow{Tick: at, To: at, Outcome: "waiting", Count: 1, Pos: e.Pos, Job: &id,
						State: &state})
				}
				continue
			case *event.ScheduleSkipped:
				if b.Name == name {
					rows = append(rows, tickRow{Tick: event.FormatTime(b.From), To: event.FormatTime(b.To),
						Outcome: "skipped", Count: b.Count, Pos: e.Pos, Why: &b.Why})
				}
				continue
			}
			if !ours || e.To == 0 {
				continue
			}
			if e.Kind() == event.KindClaimed {
				tries[e.N]++
			}
			state := e.To.String()
			rows[i].State = &state
			rows[i].Outcome = map[string]string{"queued": "waiting", "claimed": "running", "running": "running",
				"failed": "failed", "cancelled": "cancelled", "succeeded": "at_once"}[state]
			if state == "succeeded" && tries[e.N] > 1 {
				rows[i].Outcome = "retried"
			}
		}
		return nil
	}
	check(t, s.Store.Read(t.Context(), read))
	slices.Reverse(rows)
	return rows[:min(len(rows), last)]
}

// What became of the ticks of a schedule is what its events say, now and at each moment of the past, for
// programs, on the command line and on its page.
func TestScheduleTicks(t *testing.T) {
	s := ticking(t, 60)
	served := serveStore(t, s.Store, func() time.Time { return s.Now })
	get := getter(t, served)
	text := func(v any) string {
		out, err := json.MarshalIndent(v, "", " ")
		check(t, err)
		return string(out)
	}
	outcomes := make(map[string]bool)
	tail := s.Tail()
	for _, name := range []string{"poll-orders", "digest", "nightly", "weekly"} {
		for _, last := range []int{1, 7, 1000} {
			for _, pos := range []int64{0, 5, 6, tail / 3, tail / 2, tail - 9, tail} {
				path := fmt.Sprintf("/api/v1/schedules/%s/ticks?last=%d", name, last)
				if pos > 0 {
					path += fmt.Sprintf("&at=pos:%d", pos)
				}
				status, head, body := get(path)
				var got struct{ Items []tickRow }
				apitest.Answer(t, "GET", path, status, head.Get("Content-Type"), body)
				if status != 200 || json.Unmarshal([]byte(body), &got) != nil {
					t.Fatalf("%s: %d %s", path, status, body)
				}
				until := pos
				if pos == 0 {
					until = tail
				}
				want := ticksByEvents(t, s, name, until, last)
				if text(got.Items) != text(append([]tickRow{}, want...)) && len(want)+len(got.Items) > 0 {
					t.Errorf("%s: %s\nwant %s", path, text(got.Items), text(want))
				}
				for _, row := range got.Items {
					outcomes[row.Outcome] = true
				}
			}
		}
	}
	if len(outcomes) < 6 {
		t.Errorf("only %v became of ticks", outcomes)
	}
	var printed bytes.Buffer
	words := []string{"schedule", "ticks", "poll-orders", "-n", "9", "--json"}
	check(t, served.ask(t.Context(), &printed, words))
	_, _, lines := get("/api/v1/schedules/poll-orders/ticks?last=9", "Accept", "application/x-ndjson")
	if printed.String() != lines {
		t.Errorf("the command prints\n%s\nthe API\n%s", printed.String(), lines)
	}
	_, _, page := get("/schedules/poll-orders")
	counts := make(map[string]int)
	for _, row := range ticksByEvents(t, s, "poll-orders", tail, 24) {
		counts[row.Outcome]++
		if row.Job != nil && !strings.Contains(page, `href="/jobs/`+*row.Job+`"`) {
			t.Errorf("the page does not lead to the job %s", *row.Job)
		}
	}
	for outcome, n := range counts {
		if got := strings.Count(page, `<path class="`+outcome+`"`); got != 2*n { // in the picture and in the table
			t.Errorf("the page shows %d ticks that are %s, want twice %d", got, outcome, n)
		}
	}
}

// The pages of schedules say when each ticks next, what became of its last tick and who stopped it, now and
// then; the navigation and the verdict lead to them.
func TestSchedulePages(t *testing.T) {
	clock := func(s *scenario) func() time.Time { // it stands, since servers read it while the test goes on
		now := s.Now.In(time.FixedZone("", 3600))
		return func() time.Time { return now }
	}
	s := newScenario(t)
	get := getter(t, serveStore(t, s.Store, clock(s)))
	if status, _, page := get("/schedules"); status != 200 || !strings.Contains(page, "No schedule is set") {
		t.Errorf("without a schedule: %d\n%s", status, page)
	}
	s = ticking(t, 61)
	served := serveStore(t, s.Store, clock(s))
	get = getter(t, served)
	var all struct{ Items []map[string]any }
	_, _, body := get("/api/v1/schedules")
	check(t, json.Unmarshal([]byte(body), &all))
	_, _, page := get("/schedules")
	for _, one := range all.Items {
		name := one["name"].(string)
		if !strings.Contains(page, `href="/schedules/`+name+`"`) {
			t.Errorf("the page does not lead to %s", name)
		}
		next, _ := one["next"].(string)
		if at, err := time.Parse(time.RFC3339Nano, next); err == nil &&
			!strings.Contains(page, `<time datetime="`+at.UTC().Format("2006-01-02T15:04:05Z")) {
			t.Errorf("the page does not have the next tick of %s, %s", name, next)
		}
	}
	for _, part := range []string{"4 schedules, 1 paused", "“it is not read in November”", "every 5m",
		"each day at 02:30", "Mondays at 07:00", "every 10 minutes", `href="/schedules/poll-orders?act=run"`,
		`href="/schedules/weekly?act=resume"`, ` 4</span>`, "Next six hours"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page of schedules lacks %s", part)
		}
	}
	_, _, then := get("/schedules?at=pos:4")
	if !strings.Contains(then, "4 schedules, as they were then") || strings.Contains(then, "?act=") {
		t.Errorf("as of a moment at which nothing was paused:\n%s", then)
	}
	for queue, at := range map[string]string{"digests": "", "reports": "?at=pos%3A2"} { // what it feeds, and fed
		_, _, fed := get("/queues/" + queue + at)
		if !strings.Contains(fed, `"/schedules/digest`+at+`">digest</a>`) {
			t.Errorf("the page of %s%s does not lead to the schedule that feeds it:\n%s", queue, at, fed)
		}
	}
	_, _, one := get("/schedules/digest")
	for _, part := range []string{"cron: */15 * * * * → */10 * * * *; queue: reports → digests",
		"“every ten minutes is enough”", "Last ticks", "Next ticks"} {
		if !strings.Contains(one, part) {
			t.Errorf("the page of digest lacks %s:\n%s", part, one)
		}
	}
	if status, _, _ := get("/schedules/digest?at=pos:1"); status != 404 {
		t.Errorf("before it was set: %d", status)
	}
	status, _, text := get("/schedules/nosuch")
	if status != 404 || !strings.Contains(text, "no schedule nosuch") {
		t.Errorf("of no schedule: %d %s", status, text)
	}
	if status, _, _ := get("/schedules?x=1"); status != 400 {
		t.Errorf("with a parameter that it does not have: %d", status)
	}
	_, _, poll := get("/schedules/poll-orders")
	if !strings.Contains(poll, "secret") {
		t.Error("who may see bodies does not see the payload")
	}
	ask := served.asker(t, access.Read)
	for _, path := range []string{"/schedules", "/schedules/poll-orders"} {
		answer := ask(path)
		text, err := io.ReadAll(answer.Body)
		check(t, err)
		if answer.StatusCode != 200 || strings.Contains(string(text), "secret") {
			t.Errorf("%s of a token without bodies: %d %s", path, answer.StatusCode, text)
		}
	}
	s.wait(10 * time.Minute) // no process ticks
	get = getter(t, serveStore(t, s.Store, clock(s)))
	_, _, overview := get("/")
	const link = `<a href="/schedules/poll-orders">poll-orders</a> <span class="quiet">(D44)`
	if !strings.Contains(overview, link) {
		t.Errorf("the verdict does not lead to the schedule:\n%s", overview)
	}
	if _, _, page := get("/schedules"); !strings.Contains(page, "and no process ticks") {
		t.Error("the page does not say what the verdict says")
	}
}

// What a form does to a schedule says so before, and has an address of its own after; programs do the same.
func TestScheduleActs(t *testing.T) {
	s := ticking(t, 12)
	served := serveStore(t, s.Store, func() time.Time { return s.Now })
	post, get := poster(t, served), getter(t, serveStore(t, s.Store, func() time.Time { return s.Now }))
	const nightly = "/schedules/nightly"
	_, _, page := get(nightly + "?act=pause")
	for _, part := range []string{"<details open><summary>Pause…", ">Run nightly now</button>",
		"The first tick that does not come is that of ", ">Pause nightly</button>",
		"jobledger schedule pause &#39;--reason=…&#39; nightly", "One job is enqueued in backup now"} {
		if !strings.Contains(page, part) {
			t.Errorf("before, the page lacks %s", part)
		}
	}
	form := func(reason string) string { return url.Values{"reason": {reason}}.Encode() }
	status, _, text := post(nightly+"/pause", form(" "))
	if status != 400 || !strings.Contains(text, "say why") {
		t.Errorf("without a reason: %d %s", status, text)
	}
	tail := s.Tail()
	did := ""
	status, _, did = post(nightly+"/pause", form("the disk is full"))
	if status != 200 || !strings.Contains(did, `<a href="/schedules/nightly">paused schedule nightly</a>`) ||
		!strings.Contains(did, "the disk is full") {
		t.Errorf("paused: %d %s", status, did)
	}
	_, _, again := get(fmt.Sprintf("/acts/%d?to=pos:%d", tail+1, tail+1))
	if !strings.Contains(again, "disk is full") {
		t.Errorf("the address of what was done: %s", again)
	}
	if status, _, text := post(nightly+"/pause", form("again")); status != 409 ||
		!strings.Contains(text, "is paused already") {
		t.Errorf("twice: %d %s", status, text)
	}
	status, head, _ := post(nightly+"/run", "")
	if status != 303 || !strings.HasPrefix(head.Get("Location"), "/jobs/") {
		t.Fatalf("run: %d %s", status, head.Get("Location"))
	}
	if _, _, job := get(head.Get("Location")); !strings.Contains(job, "nightly") {
		t.Errorf("the job that was made: %s", job)
	}
	if status, _, did := post(nightly+"/resume", form("it has room")); status != 200 ||
		!strings.Contains(did, "resumed schedule nightly") {
		t.Errorf("resumed: %d %s", status, did)
	}
	const api = "/api/v1" + nightly
	for _, one := range []struct{ path, body, want string }{
		{"/pause", `{"reason": "a"}`, `{"changed":true,"schedule":"nightly","pos":`},
		{"/pause", `{}`, `{"changed":false,"schedule":"nightly","pos":null}`},
		{"/resume", `{}`, `{"changed":true`}, {"/run", `{}`, `"schedule":"nightly"`},
		{"/remove", `{"reason": "no"}`, `{"changed":true`},
	} {
		if status, _, text := post(api+one.path, one.body); status != 200 || !strings.Contains(text, one.want) {
			t.Errorf("%s %s: %d %s", one.path, one.body, status, text)
		}
	}
	if status, _, text := post(api+"/run", `{}`); status != 404 || !strings.Contains(text, "no such schedule") {
		t.Errorf("after it was removed: %d %s", status, text)
	}
	if status, _, did := post("/schedules/weekly/remove", form("unread")); status != 200 ||
		!strings.Contains(did, `<a href="/schedules">removed schedule weekly</a>`) {
		t.Errorf("removed: %d %s", status, did)
	}
	tail = s.Tail()
	short := served.tokenFor(t, access.Read, access.Enqueue, access.Work)
	for _, verb := range []string{"run", "pause", "resume", "remove"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, served.base+"/api/v1/schedules/digest/"+
			verb, nil)
		check(t, err)
		r.Header.Set("Authorization", short)
		answer, err := http.DefaultClient.Do(r)
		check(t, err)
		if answer.Body.Close(); answer.StatusCode != 403 {
			t.Errorf("%s without the scope operate: %d", verb, answer.StatusCode)
		}
	}
	if s.Tail() != tail {
		t.Error("what was refused changed something")
	}
	commandstest.Verify(t, s.Store)
}

// The form of a schedule says when it would tick before it sets anything, keeps what is refused, and sets
// what the command line sets. Programs ask when a schedule would tick, too.
func TestScheduleForm(t *testing.T) {
	t.Parallel()
	s := ticking(t, 12)
	clock := func() time.Time { return time.Date(2026, 3, 28, 20, 0, 0, 0, time.UTC) }
	served := serveStore(t, s.Store, clock)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b := reader{t, served.base, &http.Client{Jar: loggedIn(t, served), CheckRedirect: stay}}
	t.Cleanup(b.client.CloseIdleConnections)
	has := func(what, page string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(page, part) {
				t.Errorf("%s: there is no %q in\n%s", what, part, page)
			}
		}
	}
	_, _, page := b.do("GET", "/schedules", nil)
	has("the list", page, `href="/new/schedule"`)
	const path = "/new/schedule"
	_, _, page = b.do("GET", path, nil)
	typed := map[string]string{"name": "sync", "queue": "api", "cron": "30 2 * * *", "zone": "Europe/Berlin",
		"payload": "-all\r\nof it", "tags": "team=x\r\nsize=big one", "within": "6h", "requires": "gpu disk",
		"backoff": "min 1s, max 1h, factor 2", "jitter": "a while", "reason": "it is new"}
	tail := s.Tail()
	status, _, page := b.do("POST", path, b.form(page, path, "preview", typed))
	if status != 400 {
		t.Errorf("a wrong field: %d", status)
	}
	has("a wrong field", page, `id="wrong-jitter"`, `value="a while"`, "size=big one</textarea>",
		`value="30 2 * * *"`)
	typed["jitter"] = "5m"
	status, _, page = b.do("POST", path, b.form(page, path, "preview", typed))
	has("the preview", page, "It would be: each day at 02:30: 30 2 * * * Europe/Berlin into queue api",
		"Next tick: Sun 29 Mar 01:00, in 5h (03:00 in Europe/Berlin)", "Next tick: Mon 30 Mar 00:30",
		"On Sun 29 Mar 2026 the clocks of Europe/Berlin skip 02:30: it ticks at 03:00.",
		"jobledger schedule set --queue=api")
	same := shellWords(t, html.UnescapeString(sameAs.FindStringSubmatch(page)[1]))[1:]
	if status != 200 || s.Tail() != tail {
		t.Errorf("the preview: %d, and %d events", status, s.Tail()-tail)
	}
	status, to, text := b.do("POST", path, b.form(page, path, "set", nil))
	if status != 303 || !strings.HasPrefix(to, "/acts/") {
		t.Fatalf("set: %d to %s\n%s", status, to, text)
	}
	_, _, did := b.do("GET", to, nil)
	has("what was done", did, `<a href="/schedules/sync">`, "it is new")
	other := newScenario(t)
	line := []string{"schedule", "set", "-q", "api", "--cron", "30 2 * * *", "--zone", "Europe/Berlin",
		"--tag", "team=x", "--tag", "size=big one", "--within", "6h", "--requires", "gpu", "--requires", "disk",
		"--backoff", "min 1s, max 1h, factor 2", "--jitter", "5m", "--reason", "it is new", "--", "sync",
		"-all\nof it"}
	for i, words := range [][]string{line, same} {
		code, _, messages := other.run(0, words...)
		if code != 0 || strings.Contains(messages, "unchanged") != (i == 1) {
			t.Errorf("%q: %d %s", words, code, messages)
		}
	}
	_, ours, _ := s.run(0, "--json", "schedule", "show", "sync")
	_, theirs, _ := other.run(0, "--json", "schedule", "show", "sync")
	spec := func(text string) string {
		before, _, _ := strings.Cut(text, `,"paused"`)
		return before
	}
	if ours == "" || spec(ours) != spec(theirs) {
		t.Errorf("the form set\n%s\nthe command\n%s", ours, theirs)
	}
	const edit = "/schedules/sync/edit"
	_, _, page = b.do("GET", edit, nil)
	has("the form of it", page, `value="30 2 * * *"`,
		"-all\nof it</textarea>", "size=big one\nteam=x</textarea>")
	_, _, page = b.do("POST", edit, b.form(page, edit, "preview", map[string]string{"reason": "no"}))
	has("the same", page, "It is so already")
	_, _, page = b.do("POST", edit, b.form(page, edit, "preview", map[string]string{"cron": "every 5m"}))
	has("a period", page, "cron: 30 2 * * * → none", "every: none → 5m0s")
	change := b.form(page, edit, "set", nil)
	if status, _, text := b.do("POST", edit, change); status != 303 {
		t.Errorf("a period: %d\n%s", status, text)
	}
	if status, _, page := b.do("POST", edit, change); status != 412 || !strings.Contains(page,
		"has set this since you saw it") || !strings.Contains(page, `value="every 5m"`) {
		t.Errorf("what another has changed since: %d\n%s", status, page)
	}
	tail = s.Tail()
	post := poster(t, serveStore(t, s.Store, clock))
	status, _, text = post("/api/v1/schedules/preview",
		`{"cron": "30 2 * * *", "zone": "Europe/Berlin", "from": "2026-03-28T00:00:00Z", "number": 2}`)
	if want := `{"ticks":[{"tick":"2026-03-28T01:30:00.000000Z","local":"2026-03-28T02:30:00+01:00"},` +
		`{"tick":"2026-03-29T01:00:00.000000Z","local":"2026-03-29T03:00:00+02:00"}]}`; status != 200 ||
		strings.TrimSpace(text) != want {
		t.Errorf("the preview for programs: %d %s", status, text)
	}
	for body, field := range map[string]string{`{"cron": "61 * * * *"}`: "cron", `{"every": "x"}`: "every",
		`{"cron": "0 1 * * *", "zone": "Nowhere"}`: "zone", `{"cron": "@daily", "number": 1001}`: "number",
		`{"cron": "@daily", "from": "now"}`: "from"} {
		if status, _, text := post("/api/v1/schedules/preview", body); status != 400 ||
			!strings.Contains(text, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if s.Tail() != tail {
		t.Error("a preview recorded something")
	}
	commandstest.Verify(t, s.Store)
}
