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

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/timespec"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands/remote/wire"
)

// maxBody is the size of a request, in bytes.
const maxBody = 64 << 10

// Routes are those of the API.
func (a *Acts) Routes() (routes []door.Route) {
	for _, verb := range Verbs {
		routes = append(routes, door.Route{Pattern: "POST " + api.Root + "/jobs/{job}/" + verb,
			Needs: rightOf(verb), Queues: true, MaxBody: maxBody, Handle: a.jobHandler(verb)})
	}
	for _, verb := range []string{"pause", "resume"} {
		routes = append(routes, door.Route{Pattern: "POST " + api.Root + "/queues/{queue}/" + verb,
			Needs: door.Operate, Queues: true, MaxBody: maxBody, Handle: a.queueHandler(verb)})
	}
	return append(routes, door.Route{Pattern: "POST " + api.Root + "/acts", Needs: door.Operate, Queues: true,
		MaxBody: maxBody, Handle: a.acts})
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
// or its seq. Where it has moved on, the answer has the job as it is.
func (a *Acts) jobHandler(verb string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body struct {
			Reason    string  `json:"reason"`
			RunAt     *string `json:"run_at"`
			Priority  *int    `json:"priority"`
			Now       bool    `json:"now"`
			Succeeded bool    `json:"succeeded"`
		}
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
			now, with := render.ToJSON(j), *a.Door.ProblemOf(err)
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
		return a.send(w, r, render.ToJSON(j))
	}
}

func (a *Acts) queueHandler(verb string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body struct {
			Reason string `json:"reason"`
		}
		if err := read(r, &body); err != nil {
			return err
		}
		changed, err := a.Queue(r.Context(), verb, r.PathValue("queue"), body.Reason)
		if err != nil {
			return err
		}
		return a.send(w, r, map[string]any{"queue": r.PathValue("queue"), "paused": verb == "pause",
			"changed": changed})
	}
}

// acts carries out an act on many jobs.
func (a *Acts) acts(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Act    string              `json:"act"`
		Filter map[string][]string `json:"filter"`
		Jobs   []Chosen            `json:"jobs"`
		At     string              `json:"at"`
		Reason string              `json:"reason"`
		Spread string              `json:"spread"`
		RunAt  *string             `json:"run_at"`
		DryRun bool                `json:"dry_run"`
	}
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
	d, err := timespec.DurationWithin(text, 0, 24*time.Hour, true)
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
