package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/work"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/remote"
	"jobledger/commands/remote/wire"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// post sends a body of a media type.
func (s *served) post(method, path, kind, body string, header ...string) (status int, answer string) {
	s.t.Helper()
	a, answer := s.exchange(method, path, kind, body, header...)
	return a.StatusCode, answer
}

// exchange is post with the headers of the answer.
func (s *served) exchange(method, path, kind, body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	return s.roundTrip(method, api.Root+path, body, append([]string{"Content-Type", kind}, header...)...)
}

// remote is a client with a token of these scopes for all queues.
func (s *served) remote(name string, scopes ...access.Scope) *remote.Client {
	s.t.Helper()
	c, err := remote.New(remote.Config{URL: s.base, Token: strings.TrimPrefix(s.create(name, []string{"*"},
		scopes...), "Bearer ")})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

const jsonKind = "application/json"

func TestRequestsOfProducersAndWorkersAreChecked(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	token := s.create("all", []string{"*"}, access.Enqueue, access.Work)
	mail := s.create("mail", []string{"mail", "img-*"}, access.Enqueue, access.Work)
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	claim := `{"queues":["mail"],"worker":"w","boot":"b","tokens":["01KDXYZAF8000000000000000A"]`
	outcome := fmt.Sprintf("/jobs/%s/claims/x", s.job)
	const boot = "/workers/01KDXYZAF8000000000000B001"
	tokens := strings.Repeat(`"01KDXYZAF8000000000000000A",`, work.MaxTokens)
	ended := strings.Repeat(`{"job":"x","token":"y","outcome":"succeeded"},`, work.MaxOps)
	alive := strings.Repeat(`{"job":"x","token":"y"},`, work.MaxOps)
	large := `{"queue":"a","payload":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
	large = strings.Repeat(large, 8) // a little more than MaxBody
	for _, c := range []struct {
		method, path, kind, body, token string
		status                          int
		code                            string
	}{
		{"POST", "/jobs", "text/plain", `{}`, token, 415, "media_type"},
		{"POST", "/jobs", jsonKind, `{`, token, 400, "usage"},
		{"POST", "/jobs", jsonKind, `{"queue":"a","queue":"b"}`, token, 400, "usage"},
		{"POST", "/jobs", jsonKind, `{"queue":"a","payload":` + deep + `}`, token, 400, "usage"},
		{"POST", "/jobs", jsonKind, `{"queue":"a","payload":"` + strings.Repeat("x", 2<<20) + `"}`, token, 413,
			"too_large"},
		{"POST", "/jobs", jsonKind, `{"queue":"a","payload":"` + strings.Repeat("x", 1<<20+1) + `"}`, token, 400,
			"usage"},
		{"POST", "/jobs", jsonKind, `{"queue":"a","priority":9223372036854775808}`, token, 400, "usage"},
		{"POST", "/jobs", jsonKind, `{"queue":"a","unknown":1}`, token, 400, "usage"},
		{"POST", "/jobs", jsonKind, `{"queue":"a","payload":"\ud800"}`, token, 400, "usage"},
		{"POST", "/jobs", "application/x-ndjson", `{"queue":"a"}` + "\nx\n", token, 400, "usage"},
		{"POST", "/jobs", "application/x-ndjson", strings.Repeat(`{"queue":"a"}`+"\n", 1001), token,
			413, "too_large"},
		{"POST", "/jobs", "application/x-ndjson", "\n\n", token, 400, "usage"},
		{"POST", "/jobs", "application/x-ndjson", large, token, 413, "too_large"},
		{"POST", "/claims", jsonKind, large, token, 413, "too_large"},
		{"POST", "/claims", jsonKind, claim[:len(claim)-29] + tokens + `"x"]}`, token, 413, "too_large"},
		{"POST", "/claims", jsonKind, claim + `,"outcomes":[` + ended + `{"job":"x","token":"y"}]}`, token, 413,
			"too_large"},
		{"POST", "/claims", jsonKind, claim + `,"heartbeats":[` + alive + `{"job":"x","token":"y"}]}`, token, 413,
			"too_large"},
		{"POST", "/claims", jsonKind, claim + `,"outcomes":[` + strings.TrimSuffix(ended, ",") +
			`],"heartbeats":[{"job":"x","token":"y"}]}`, token, 413, "too_large"},
		{"POST", "/heartbeats", jsonKind, `{"boot":"b","lease":9,"claims":[` + alive + `{"job":"x","token":"y"}]}`,
			token, 413, "too_large"},
		{"POST", "/jobs", jsonKind, `{"queue":"other"}`, mail, 403, "forbidden"},
		{"POST", "/jobs", jsonKind, `{"queue":"img-7"}`, mail, 201, ""},
		{"PUT", "/jobs/x", jsonKind, `{"queue":"a"}`, token, 400, "usage"},
		{"PUT", "/jobs/01KDXYZAF8000000000000000A", jsonKind, `{"queue":"a","id":"01KDXYZAF8000000000000000B"}`,
			token, 400, "usage"},
		{"PUT", "/jobs/" + string(s.job), jsonKind, `{"queue":"mail","payload":"a"}`, token, 200, ""},
		{"PUT", "/jobs/" + string(s.job), jsonKind, `{"queue":"mail","payload":"b"}`, token, 409, "conflict"},
		{"POST", "/queues/A/jobs", "text/plain", "x", token, 400, "usage"},
		{"POST", "/queues/a/jobs?x=1", "text/plain", "x", token, 400, "usage"},
		{"POST", "/queues/a/jobs?key=a&key=b", "text/plain", "x", token, 400, "usage"},
		{"POST", "/queues/a/jobs", "text/plain", strings.Repeat("x", 1<<20+1), token, 413, "too_large"},
		{"POST", "/claims", jsonKind, claim + `,"wait":61}`, token, 400, "usage"},
		{"POST", "/claims", jsonKind, claim + `,"lease":0.1}`, token, 400, "usage"},
		{"POST", "/claims", jsonKind, claim + `,"lease":1e300}`, token, 400, "usage"},
		{"POST", "/claims", jsonKind, claim + `,"Tokens":[]}`, token, 400, "usage"},
		{"POST", "/claims", jsonKind, claim + `,"tokens":[]}`, token, 400, "usage"},
		{"POST", "/claims", jsonKind, strings.Replace(claim, "01K", "x", 1) + `}`, token, 400, "usage"},
		{"POST", "/claims", jsonKind, strings.Replace(claim, `"01KDXYZAF8000000000000000A"`, "", 1) + `}`, token,
			400, "usage"},
		{"POST", "/claims", jsonKind, strings.Replace(claim, `"boot":"b",`, "", 1) + `}`, token, 400, "usage"},
		{"POST", "/claims", jsonKind, strings.Replace(claim, `"mail"`, `"other"`, 1) + `}`, mail, 403, "forbidden"},
		{"GET", "/claims", "", "", token, 400, "usage"},
		{"GET", "/claims/ready?queue=mail&wait=x", "", "", token, 400, "usage"},
		{"PUT", outcome, jsonKind, `{"outcome":"won"}`, token, 400, "usage"},
		{"PUT", outcome, jsonKind, `{"outcome":"succeeded","reason":"x"}`, token, 400, "usage"},
		{"PUT", outcome, jsonKind, `{"outcome":"succeeded","result":"a","result_base64":"YQ=="}`, token, 400,
			"usage"},
		{"PUT", outcome, jsonKind, `{"outcome":"succeeded","token":"y"}`, token, 400, "usage"},
		{"PUT", outcome, jsonKind, `{"outcome":"succeeded"}`, token, 410, "lease_lost"},
		{"PUT", "/jobs/01KDXYZAF8000000000000000C/claims/x", jsonKind, `{"outcome":"succeeded"}`, token, 404,
			"no_job"},
		{"POST", "/heartbeats", jsonKind, `{"boot":"b","lease":9,"claims":[{"job":"x","token":""}]}`, token, 400,
			"usage"},
		{"PUT", boot, jsonKind, `{"worker":"w"}`, token, 400, "usage"},
		{"PUT", boot, jsonKind, `{"worker":"w","boot":"c","queues":["mail"]}`, token, 400, "usage"},
		{"PUT", boot, jsonKind, `{"worker":"w","queues":["other"]}`, mail, 403, "forbidden"},
		{"PUT", "/workers/b", jsonKind, `{"worker":"w","queues":["mail"]}`, token, 400, "usage"},
		{"PUT", strings.ToLower(boot), jsonKind, `{"worker":"w","queues":["mail"]}`, token, 400, "usage"},
		{"DELETE", boot, "", "", token, 204, ""},
		{"DELETE", "/workers/never", "", "", token, 400, "usage"},
		{"DELETE", "/jobs", "", "", token, 405, "method"},
	} {
		status, text := s.post(c.method, c.path, c.kind, c.body, "Authorization", c.token)
		var p wire.Problem
		_ = json.Unmarshal([]byte(text), &p)
		if status != c.status || p.Code != c.code || c.code != "" && p.Status != c.status {
			t.Errorf("%s %s %.80s: %d %.200s, want %d %s", c.method, c.path, c.body, status, text, c.status, c.code)
		}
	}
	commandstest.Verify(t, s.Store)
}

// A job of another queue is as if it were not there, for whatever a token may ask.
func TestTokenSeesNothingOfOtherQueues(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	token := s.create("other", []string{"other"}, access.Enqueue, access.Work, access.Read, access.Bodies)
	worker := s.remote("w", access.Work)
	w := event.Worker{Name: "w", Boot: "boot-1"}
	jobs, err := worker.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: w})
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	claim := fmt.Sprintf("/jobs/%s/claims/%s", jobs[0].ID, jobs[0].Token)
	for _, c := range [][3]string{{"GET", "/jobs/" + string(s.job), ""},
		{"GET", "/jobs/" + string(s.job[:10]), ""},
		{"GET", "/jobs/" + string(s.job) + "/payload", ""}, {"GET", "/jobs/" + string(s.job) + "/events", ""},
		{"PUT", claim, `{"outcome":"succeeded"}`}, {"PUT", claim + "/process", `{"worker":"w","boot":"x"}`},
		{"POST", "/jobs", `{"queue":"other","after":["` + string(s.job) + `"]}`}} {
		status, text := s.post(c[0], c[1], jsonKind, c[2], "Authorization", token)
		const none = "01KDXYZAF8000000000000000A"
		other := func(text string) string { return strings.ReplaceAll(text, string(s.job), none) }
		missing, said := s.post(c[0], other(c[1]), jsonKind, other(c[2]), "Authorization", token)
		if status != http.StatusNotFound || missing != status || other(text) != said {
			t.Errorf("%s %s: %d %s, and of a job that is not there %d %s", c[0], c[1], status, text, missing, said)
		}
	}
	for _, path := range []string{"/jobs", "/jobs?queue=mail", "/events", "/events?queue=mail", "/status",
		"/queues", "/workers", "/events/stream?queue=mail", "/events/stream"} {
		if status, text := s.post("GET", path, "", "", "Authorization", token); status != http.StatusForbidden {
			t.Errorf("GET %s: %d %s", path, status, text)
		}
	}
	status, text := s.post("GET", "/claims?boot=boot-1", "", "", "Authorization", token)
	if status != http.StatusOK || strings.Contains(text, jobs[0].Token) {
		t.Errorf("claims of another queue: %d %s", status, text)
	}
	beat := fmt.Sprintf(`{"boot":"boot-1","claims":[{"job":%q,"token":%q}]}`, jobs[0].ID, jobs[0].Token)
	status, text = s.post("POST", "/heartbeats", jsonKind, beat, "Authorization", token)
	if status != http.StatusOK || !strings.Contains(text, `"lease_until":null`) ||
		!strings.Contains(text, "no_job") {
		t.Errorf("heartbeat for another queue: %d %s", status, text)
	}
	if status, text := s.post("PUT", "/jobs/"+string(s.job), jsonKind, `{"queue":"other"}`, "Authorization",
		token); status != http.StatusConflict || strings.Contains(text, "mail") {
		t.Errorf("the id of a job of another queue: %d %s", status, text)
	}
	if _, err := worker.Apply(t.Context(), "", jobs[0].ID, commands.Succeed{Token: jobs[0].Token}); err != nil {
		t.Errorf("the owner: %v", err)
	}
	commandstest.Verify(t, s.Store)
}

// The methods of a client do what those of a Service do.
func TestRemoteIsLikeAService(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	c := s.remote("all", access.Enqueue, access.Work)
	ctx := t.Context()
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	asked := commands.Enqueue{ID: ulid.Make().String(), Queue: "q", Payload: []byte{0xff, 0}, Key: "k",
		Priority: 7, RunAt: at,
		MaxAttempts: 3, MaxRuntime: 1500 * time.Millisecond, Version: "v", Requires: []string{"gpu"},
		Tags: map[string]string{"a": "b"}, Group: "g", Backoff: event.Backoff{Min: time.Second, Max: time.Minute,
			Factor: 3}, After: []commands.Dependency{{Job: s.job, On: event.OnFinished}}}
	for round := range 2 {
		got, err := c.Enqueue(ctx, "", asked)
		if err != nil || len(got) != 1 || got[0].Existing != (round == 1) || string(got[0].ID) != asked.ID {
			t.Fatalf("enqueue: %+v, %v", got, err)
		}
	}
	var stored projection.Job
	if err := s.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		if stored, _, err = projection.Get(ctx, tx, event.JobID(asked.ID)); err == nil {
			err = projection.LoadBodies(ctx, tx, &stored)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if j := stored; string(j.Payload) != "\xff\x00" || j.Key != "k" || j.Priority != 7 || j.MaxAttempts != 3 ||
		j.MaxRuntime != asked.MaxRuntime || j.Version != "v" || len(j.Requires) != 1 || j.Tags["a"] != "b" ||
		j.Group != "g" || j.Backoff != asked.Backoff || j.State != event.Blocked || len(j.After) != 1 {
		t.Errorf("stored: %+v", j)
	}
	asked.Payload = []byte("other")
	if _, err := c.Enqueue(ctx, "", asked); !errors.Is(err, commands.ErrConflict) {
		t.Errorf("another payload: %v", err)
	}
	many := make([]commands.Enqueue, 1500)
	for i := range many {
		many[i] = commands.Enqueue{Queue: "many"}
	}
	if got, err := c.Enqueue(ctx, "", many...); err != nil || len(got) != 1500 {
		t.Errorf("many: %d, %v", len(got), err)
	}
	w := event.Worker{Name: "w", Boot: "01KDXYZAF8000000000000B001", Host: "h", PID: 7}
	if err := c.WorkerStarted(ctx, w, []string{"mail", "many"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.WorkerStarted(ctx, w, []string{"mail", "many"}, nil); err != nil { // as after a lost answer
		t.Fatal(err)
	}
	r := commands.ClaimRequest{Queues: []string{"mail"}, Worker: w, Lease: time.Minute,
		MaxRuntime: 10 * time.Second}
	jobs, err := c.Claim(ctx, r)
	if err != nil || len(jobs) != 1 || string(jobs[0].Payload) != "a" || len(jobs[0].Salt) == 0 ||
		!jobs[0].EndBy.Equal(jobs[0].ClaimedAt.Add(10*time.Second)) || jobs[0].Worker != w {
		t.Fatalf("claim: %+v, %v", jobs, err)
	}
	j := jobs[0]
	if _, err := c.Claim(ctx, commands.ClaimRequest{Queues: []string{"else"}, Worker: w}); !errors.Is(err,
		commands.ErrInvalid) {
		t.Errorf("a queue that the worker did not start for: %v", err)
	}
	half := 0.5
	if j, err = c.Apply(ctx, "", j.ID, commands.Heartbeat{Token: j.Token, Progress: &half}); err != nil ||
		j.State != event.Running || j.Progress == nil || j.LeaseUntil.IsZero() {
		t.Errorf("heartbeat: %+v, %v", j, err)
	}
	if _, err := c.Apply(ctx, "", j.ID, commands.Succeed{Token: "x"}); !errors.Is(err, commands.ErrLeaseLost) {
		t.Errorf("another token: %v", err)
	}
	results, more, err := c.ApplyAndClaim(ctx, "", []commands.Op{{Job: jobs[0],
		Command: commands.Fail{Token: jobs[0].Token, Code: "x", Detail: "d"}}}, commands.ClaimRequest{
		Queues: []string{"many"}, Worker: w, Limit: 3})
	if err != nil || len(results) != 1 || results[0].Err != nil || results[0].Job.Failures != 1 ||
		len(more) != 3 {
		t.Fatalf("turn: %+v, %d jobs, %v", results, len(more), err)
	}
	held, err := c.Held(ctx, w.Boot)
	if err != nil || len(held) != 3 {
		t.Errorf("held: %d, %v", len(held), err)
	}
	if _, err := c.Apply(ctx, "", more[0].ID, commands.Retry{}); !errors.Is(err, commands.ErrInvalid) {
		t.Errorf("an operator's command: %v", err)
	}
	next := event.Worker{Name: "w", Boot: "b2"}
	over, err := c.Apply(ctx, "", more[0].ID, commands.TakeOver{Token: more[0].Token, Process: next})
	if err != nil || over.Worker.Boot != "b2" || over.State != event.Running {
		t.Errorf("take over: %+v, %v", over, err)
	}
	for range 2 {
		if err := c.WorkerStopped(ctx, w); err != nil {
			t.Error(err)
		}
	}
	counts := map[event.Kind]int{}
	if err := s.Store.Read(ctx, func(tx *ledger.Tx) error {
		for e, err := range tx.Events(ctx, ledger.Filter{}) {
			if err != nil {
				return err
			}
			counts[e.Kind()]++
		}
		return nil
	}); err != nil || counts[event.KindWorkerStarted] != 1 || counts[event.KindWorkerStopped] != 1 {
		t.Errorf("events: %v, %v", counts, err)
	}
	commandstest.Verify(t, s.Store)
}

func TestClaimWaitsUntilAJobIsReady(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	c := s.remote("all", access.Enqueue, access.Work)
	got := make(chan []projection.Job)
	for i := range 4 {
		go func() {
			jobs, err := c.ClaimWithin(t.Context(), commands.ClaimRequest{Queues: []string{"late"},
				Worker: event.Worker{Name: "w", Boot: fmt.Sprint(i)}}, time.Minute)
			if err != nil {
				t.Error(err)
			}
			got <- jobs
		}()
	}
	for s.work.Waiting() < 4 {
		time.Sleep(time.Millisecond) // no event says that a request waits
	}
	for range 3 {
		if _, err := c.Enqueue(t.Context(), "", commands.Enqueue{Queue: "late"}); err != nil {
			t.Fatal(err)
		}
	}
	due := time.Now().Add(300 * time.Millisecond)
	if _, err := c.Enqueue(t.Context(), "", commands.Enqueue{Queue: "late", RunAt: due}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if jobs := <-got; len(jobs) != 1 {
			t.Errorf("a claim that waited got %d jobs", len(jobs))
		}
	}
	if s.work.Waiting() != 0 {
		t.Errorf("%d still wait", s.work.Waiting())
	}
	// One whose client has gone claims nothing.
	ctx, cancel := context.WithCancel(t.Context())
	body, _ := json.Marshal(wire.Claims{Process: wire.Process{Worker: "w", Boot: "gone"},
		Queues: []string{"late"}, Tokens: []string{ulid.Make().String()}, Wait: 60})
	r, err := http.NewRequestWithContext(ctx, "POST", s.base+api.Root+"/claims", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", jsonKind)
	r.Header.Set("Authorization", s.create("gone", []string{"*"}, access.Work))
	ended := make(chan error)
	go func() {
		a, err := s.client.Do(r)
		if err == nil {
			_ = a.Body.Close()
		}
		ended <- err
	}()
	for s.work.Waiting() < 1 {
		time.Sleep(time.Millisecond) // no event says that a request waits
	}
	cancel()
	<-ended
	for s.work.Waiting() > 0 {
		time.Sleep(time.Millisecond) // no event says that the server has noticed
	}
	if _, err := c.Enqueue(t.Context(), "", commands.Enqueue{Queue: "late"}); err != nil {
		t.Fatal(err)
	}
	jobs, err := c.ClaimWithin(t.Context(), commands.ClaimRequest{Queues: []string{"late"},
		Worker: event.Worker{Name: "w", Boot: "here"}}, time.Minute)
	if err != nil || len(jobs) != 1 || jobs[0].Attempt != 1 {
		t.Errorf("after a client had gone: %+v, %v", jobs, err)
	}
	// A server that ends answers at once.
	token := s.create("end", []string{"*"}, access.Work)
	status := make(chan int)
	go func() {
		code, _ := s.post("GET", "/claims/ready?queue=late&wait=60", "", "", "Authorization", token)
		status <- code
	}()
	for s.work.Waiting() < 1 {
		time.Sleep(time.Millisecond) // no event says that a request waits
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if code := <-status; code != http.StatusOK {
		t.Errorf("a server that ends answered %d", code)
	}
	commandstest.Verify(t, s.Store)
}

// Workers over HTTP, whose idle waits are at the server, do all jobs, each once.
func TestWorkersOverHTTPDoAllJobs(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	c := s.remote("all", access.Enqueue, access.Work)
	var mu sync.Mutex
	done := map[event.JobID]int{}
	var all sync.WaitGroup
	const workers, jobs = 3, 60
	var running []*worker.Worker
	finished := make(chan struct{}, jobs)
	for range workers {
		w := &worker.Worker{Backend: c, Queues: []string{"q"}, Slots: 4,
			Handler: worker.HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
				mu.Lock()
				done[job.ID]++
				mu.Unlock()
				finished <- struct{}{}
				return []byte("ok"), nil
			})}
		running = append(running, w)
		all.Go(func() {
			if _, err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range jobs {
		e := commands.Enqueue{Queue: "q", Payload: fmt.Append(nil, i)}
		if _, err := c.Enqueue(t.Context(), "", e); err != nil {
			t.Fatal(err)
		}
	}
	for range jobs {
		<-finished
	}
	for _, w := range running {
		w.Stop()
	}
	all.Wait()
	for id, n := range done {
		if n != 1 {
			t.Errorf("job %s ran %d times", id, n)
		}
	}
	if len(done) != jobs {
		t.Errorf("%d jobs ran, want %d", len(done), jobs)
	}
	commandstest.Verify(t, s.Store)
}

// What is one JSON object, and what is not, whether or not it looks simple.
func TestJSONIsRead(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	wide := func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf(`"a%d":[{"a":1},{"a":2}]`, i))
		}
		return "{" + strings.Join(names, ",") + "}"
	}
	for text, want := range map[string]string{
		`{}`: "", ` {"a":{"a":1},"b":[{"a":1},"a","}"]} `: "", `{"A":1,"a":1}`: "", `{"a":"\"b\":","b":{}}`: "",
		`{"\u0061":1,"b":2}`: "", deep(wire.MaxDepth): "", wide(100): "",
		`{"a":1,"a":2}`: `"a" is given twice`, `{"b":{"a":1,"c":[],"a":2}}`: `"a" is given twice`,
		`{"a":1,"\u0061":2}`: `"a" is given twice`, `{"a7":1,` + wide(100)[1:]: `"a7" is given twice`,
		deep(wire.MaxDepth + 1): "nested deeper than 32", `{"a":1} {}`: "text after the object",
		`{"a":1`: "it breaks off", ``: "it breaks off", `[]`: "no object", `"a"`: "no object", `1`: "no object",
		`{"a":"\ud800"}`: `\ud800 is half of a character`, "{\"a\":\"\xff\"}": "not UTF-8",
	} {
		got := ""
		if err := wire.Check([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.60s: %q, want %q", text, got, want)
		}
	}
}
