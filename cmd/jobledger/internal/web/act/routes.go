package act

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/remote/wire"
)

// maxBody is the size of a request, in bytes.
const maxBody = 64 << 10

// Routes are those of the API.
func (a *Acts) Routes() (routes []door.Route) {
	for _, verb := range Verbs {
		doc := docs[verb]
		doc.Headers, doc.Answer, doc.Maybe = []string{"If-Match"}, wire.Job{}, true
		doc.Refuses = []int{http.StatusConflict, http.StatusPreconditionFailed}
		routes = append(routes, door.Route{Pattern: "POST " + api.Root + "/jobs/{job}/" + verb,
			Needs: rightOf(verb), Queues: true, MaxBody: maxBody, Handle: a.jobHandler(verb), Doc: doc})
	}
	for _, verb := range []string{"pause", "resume"} {
		doc := docs[verb]
		doc.Answer, doc.Maybe = queueAct{}, true
		routes = append(routes, door.Route{Pattern: "POST " + api.Root + "/queues/{queue}/" + verb,
			Needs: door.Operate, Queues: true, MaxBody: maxBody, Handle: a.queueHandler(verb), Doc: doc})
	}
	routes = append(routes, a.settingRoutes()...)
	routes = append(routes, a.scheduleRoutes()...)
	return append(routes, door.Route{Pattern: "POST " + api.Root + "/acts", Needs: door.Operate, Queues: true,
		MaxBody: maxBody, Handle: a.acts, Doc: door.Doc{ID: "actOnJobs", Body: manyActs{}, Answer: Tally{},
			Example: `{"act": "retry", "filter": {"queue": ["mail"], "state": ["failed"]}, "at": "pos:5",
				"reason": "the provider is back", "dry_run": true}`,
			Summary: "Cancels, retries or reschedules all jobs that a filter selects as of a position, or those " +
				"that are " +
				"named."}})
}

// docs describe the acts on one job or one queue.
var docs = map[string]door.Doc{
	"cancel": {ID: "cancelJob", Summary: "Ends a job that has not ended. If-Match has its seq.",
		Body: reason{}, Example: `{"reason": "the order was withdrawn"}`},
	"retry": {ID: "retryJob", Summary: "Queues a job that has ended once more. If-Match has its seq.",
		Body: retry{}, Example: `{"reason": "the provider is back"}`},
	"reschedule": {ID: "rescheduleJob", Summary: "Changes when a job runs, or its priority. If-Match has " +
		"its seq.",
		Body: reschedule{}, Example: `{"priority": 5, "reason": "the customer waits"}`},
	"unblock": {ID: "unblockJob", Body: reason{}, Example: `{"reason": "all of the batch is there"}`,
		Summary: "Lifts the hold of a job that was enqueued with one: it is queued, unless it waits for other " +
			"jobs. If-Match has its seq."},
	"erase": {ID: "eraseJob", Body: reason{}, Example: `{"reason": "the customer asked for it"}`,
		Summary: "Removes the payload and the results of a job for good. If-Match has its seq.",
		About:   "A session may do it if the server was started with --allow erase."},
	"pause": {ID: "pauseQueue", Summary: "Pauses a queue.", Body: reason{},
		Example: `{"reason": "the provider is down"}`},
	"resume": {ID: "resumeQueue", Summary: "Resumes a queue.", Body: reason{},
		Example: `{"reason": "the provider is back"}`},
}

// reason is the body of an act that needs no more.
type reason struct {
	Reason string `json:"reason,omitempty"` // why, as the events say it
}

type retry struct {
	reason
	Now       bool `json:"now,omitempty"`       // do not wait for a command that may still run
	Succeeded bool `json:"succeeded,omitempty"` // a job that has succeeded, too
}

type reschedule struct {
	reason
	RunAt    *string `json:"run_at,omitempty"` // RFC 3339; unless it is given, the time stays
	Priority *int    `json:"priority,omitempty"`
}

// jobAct is the body of any act on one job.
type jobAct struct {
	retry
	RunAt    *string `json:"run_at,omitempty"`
	Priority *int    `json:"priority,omitempty"`
}

// queueAct is what became of a queue.
type queueAct struct {
	Changed bool   `json:"changed"` // false: it was so already
	Paused  bool   `json:"paused"`  // whether the queue is paused now
	Queue   string `json:"queue"`
}

// manyActs is the body of an act on many jobs.
type manyActs struct {
	Act    string              `json:"act" openapi:"enum=cancel,retry,reschedule"`
	Filter map[string][]string `json:"filter,omitempty"` // the parameters of GET /jobs
	Jobs   []Chosen            `json:"jobs,omitempty"`   // these, in place of a filter
	At     string              `json:"at"`               // pos:N, as of which the filter selects
	Reason string              `json:"reason,omitempty"`
	Spread string              `json:"spread,omitempty"` // the jobs run within so long, as 10m
	RunAt  *string             `json:"run_at,omitempty"` // RFC 3339, for reschedule; now unless it is given
	DryRun bool                `json:"dry_run,omitempty"`
}

// read reads the JSON body of r into v; an empty one says nothing.
func read(r *http.Request, v any) error {
	text, err := io.ReadAll(r.Body)
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return door.Refusal(http.StatusRequestEntityTooLarge, "too_large", "the body is larger than allowed here")
	}
	if err != nil {
		return door.Refusal(http.StatusRequestTimeout, "slow", "the body did not arrive")
	}
	if len(text) == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return door.Refusal(http.StatusUnsupportedMediaType, "media_type", "the body must be application/json")
	}
	return wire.Read(text, v)
}

// jobHandler carries out a verb on one job. The header If-Match has the tag of the job as the caller saw it,
// or its seq. If it has moved on, the answer has the job as it is now.
func (a *Acts) jobHandler(verb string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body jobAct
		if err := read(r, &body); err != nil {
			return err
		}
		request := Request{Reason: body.Reason, Priority: body.Priority, Now: body.Now, Succeeded: body.Succeeded}
		var err error
		if request.RunAt, err = readRunAt(body.RunAt); err != nil {
			return err
		}
		if request.Seqs, err = api.SeqsOf(r.Header.Get("If-Match")); err != nil {
			return err
		}
		j, err := a.Job(r.Context(), verb, r.PathValue("job"), request)
		if err != nil && j.Seq > 0 { // the caller may change it, and is to see why not
			now, with := words.ToJSON(j), *a.Door.ProblemOf(err)
			if with.Status == http.StatusPreconditionFailed || with.Status == http.StatusConflict {
				with.Job = &now
				with.Pos, _ = a.Tail(r.Context()) // it is only for the client's convenience
			}
			err = &with
		}
		if j.Seq > 0 {
			w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(j.Seq, 10)))
		}
		if err != nil {
			return err
		}
		return a.send(w, r, words.ToJSON(j))
	}
}

func (a *Acts) queueHandler(verb string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body reason
		if err := read(r, &body); err != nil {
			return err
		}
		changed, err := a.Queue(r.Context(), verb, r.PathValue("queue"), body.Reason)
		if err != nil {
			return err
		}
		return a.send(w, r, queueAct{changed, verb == "pause", r.PathValue("queue")})
	}
}

// acts carries out an act on many jobs.
func (a *Acts) acts(w http.ResponseWriter, r *http.Request) error {
	var body manyActs
	if err := read(r, &body); err != nil {
		return err
	}
	pos, err := strconv.ParseInt(strings.TrimPrefix(body.At, "pos:"), 10, 64)
	if err != nil {
		return door.BadInput("at", "at is pos:N, where the filter selects the jobs")
	}
	m := Many{Verb: body.Act, Reason: body.Reason, Filter: url.Values(body.Filter), Jobs: body.Jobs, Pos: pos,
		DryRun: body.DryRun}
	if m.RunAt, err = readRunAt(body.RunAt); err != nil {
		return err
	}
	if m.Spread, err = ParseSpread(body.Spread); err != nil {
		return err
	}
	t, err := a.Many(r.Context(), m)
	if err != nil {
		return err
	}
	return a.send(w, r, t)
}

// readRunAt reads a time of JSON; nil where there is none.
func readRunAt(text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339Nano, *text)
	if err != nil {
		return nil, door.BadInput("run_at", fmt.Sprintf(
			"run_at: %.40q is not a time such as 2026-05-04T15:04:05+02:00", *text))
	}
	return &t, nil
}

// ParseSpread reads over how long the jobs of an act are spread; "": not at all.
func ParseSpread(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := when.DurationWithin(text, 0, 24*time.Hour, true)
	if err != nil {
		return 0, door.BadInput("spread", "spread: "+err.Error())
	}
	return d, nil
}

// send answers with value, which includes everything up to the position that the answer names.
func (a *Acts) send(w http.ResponseWriter, r *http.Request, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if pos, err := a.Tail(r.Context()); err == nil { // it is done, whether or not this can be read
		w.Header().Set("Jobledger-Pos", strconv.FormatInt(pos, 10))
	}
	w.Header().Set("Content-Type", "application/json")
	return door.Send(w, append(body, '\n'))
}
