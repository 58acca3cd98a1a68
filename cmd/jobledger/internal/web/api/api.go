package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/paging"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// API answers programs. It is safe for concurrent use.
type API struct {
	Config
	metrics     cache
	streams     door.Shares
	totals      view.Totals
	books       view.Kept[view.Books]
	examined    view.Kept[[]doctor.Finding]
	Waiting     func() int    // how many claims wait; nil: none
	StreamWrite time.Duration // how long the client of a stream may read nothing

	// SendLines sends lines of JSON as write makes them, which have everything up to pos. Package send sets it.
	SendLines func(w http.ResponseWriter, r *http.Request, pos int64,
		write func(ctx context.Context, out io.Writer) error) error
}

// Ask runs one command line, without the program's name, on the ledger that is open, and writes what it
// prints to out. Its error is that of the command.
type Ask func(ctx context.Context, out io.Writer, words []string) error

// Config says what an [API] answers about.
type Config struct {
	Store    *ledger.Store
	Door     *door.Door
	Follower *view.Follower
	Moments  *view.Moments
	Verifier *view.Verifier
	Figures  *view.Now
	Ask      Ask
	Now      func() time.Time
	Search   time.Duration                    // how long a search for jobs takes at most, about; 0: [SearchTime]
	Archive  string                           // the folder of the archive; "": it is not known
	Copy     bool                             // Store is a copy, without payloads and results
	Report   func(format string, args ...any) // logs a fault of the server, in one line
}

// New returns an API.
func New(c Config) *API {
	return &API{Config: c, StreamWrite: defaultStreamWrite, streams: door.Shares{Most: maxStreamsGrant}}
}

// Routes are those of the API and of the metrics.
func (a *API) Routes() []door.Route {
	return append([]door.Route{
		{Pattern: "GET /metrics", Needs: door.Metrics, Handle: a.serveMetrics},
		{Pattern: "GET " + Root + "/openapi.json", Needs: door.Read, Queues: true,
			Types: []string{typeObject}, Handle: a.openAPI},
		{Pattern: "GET " + Root + "/events/stream", Needs: door.Read, Streams: true, Queues: true,
			Types:  []string{"text/event-stream"},
			Handle: a.streamEvents},
		{Pattern: "GET " + Root + "/ledger", Needs: door.Read, Queues: true, Handle: a.ledger},
		{Pattern: "GET " + Root + "/queues/{queue}", Needs: door.Read, Queues: true, Handle: a.queue},
		{Pattern: "GET " + Root + "/events/{pos}", Needs: door.Read, Queues: true, Handle: a.event},
		{Pattern: "GET " + Root + "/attempts", Needs: door.Read, Queues: true, StreamsIf: wholeList,
			Handle: a.attempts},
		{Pattern: "GET " + Root + "/jobs/{job}/attempts", Needs: door.Read, Queues: true, StreamsIf: wholeList,
			Handle: a.attempts},
		{Pattern: "GET " + Root + "/jobs/{job}/payload", Needs: door.Read | door.Bodies, Queues: true,
			Types: octets, Handle: a.payload},
		{Pattern: "GET " + Root + "/jobs/{job}/result", Needs: door.Read | door.Bodies, Queues: true,
			Types: octets, Handle: a.result},
	}, append(a.pictureRoutes(), a.verbRoutes()...)...)
}

// Root begins the path of every resource.
const Root = "/api/v1"

// Bounds of the parameter limit.
const (
	DefaultLimit = 100
	maxLimit     = 1000
	maxParams    = 64
)

// SearchTime is how long a search for jobs takes at most, about, unless the Config says otherwise. Its answer
// is what was found by then.
const SearchTime = 2 * time.Second

// Resource is an answer of the API: that of a verb, whose flags are the parameters.
type Resource struct {
	Path   string // below Root
	verb   string
	Params []string // flags of the verb that may be given; "at" stands for --as-of
	form   form
}

// form is how a resource is answered.
type form int

const (
	list   form = iota // all lines that the verb prints
	one                // the first of them
	jobs               // pages of jobs, the newest first
	events             // pages of events, the oldest first
)

// Resources are all of them.
var Resources = []Resource{
	{"/status", "status", []string{"at"}, list},
	{"/queues", "queues", []string{"at", "paused"}, list},
	{"/workers", "workers", []string{"at", "all"}, list},
	{"/jobs", "list", []string{"at", "queue", "state", "tag", "key", "group", "from", "to", "by", "error",
		"exit", "host", "find", "limit"}, jobs},
	{"/jobs/{job}", "show", []string{"at"}, one},
	{"/jobs/{job}/events", "history", []string{"at"}, list},
	{"/jobs/{job}/why", "why", []string{"at"}, one},
	{"/jobs/{job}/owner", "owner", []string{"at"}, one},
	{"/events", "events", []string{"at", "job", "kind", "worker", "queue", "actor", "from", "to", "after",
		"last", "limit"}, events},
}

// switches are the parameters whose value is true or false.
var switches = []string{"paused", "all"}

func (a *API) verbRoutes() (routes []door.Route) {
	for _, res := range Resources {
		routes = append(routes, door.Route{Pattern: "GET " + Root + res.Path, Needs: door.Read,
			Queues: res.ofQueues(), StreamsIf: res.streamsIf(),
			Handle: func(w http.ResponseWriter, r *http.Request) error { return a.answer(w, r, res) }})
	}
	return routes
}

// octets are the media types of bytes that nothing is said about.
var octets = []string{"application/octet-stream"}

// Found is what a verb printed for a resource.
type Found struct {
	Lines [][]byte
	next  string // the address of the next page; "": there is none

	ended *paging.Ended // the time of the search was over; nil: it was not
	pos   int64         // the lines have everything up to this position: events after it follow without a gap

	absent projection.Absent // the jobs that have left the ledger and are not in the lines
}

// Find runs the verb of res with query, and returns the lines of one page.
func (a *API) Find(r *http.Request, res Resource, query url.Values) (f Found, err error) {
	query = a.pinned(query)
	words, limit, err := res.Words(query, r.PathValue("job"))
	if err != nil {
		return f, err
	}
	if res.ofQueues() {
		if err := a.Within(r, query); err != nil {
			return f, err
		}
	}
	if f.pos, err = a.Tail(r.Context()); err != nil {
		return f, err
	}
	out := &answerBuffer{first: res.form == one}
	if res.form == jobs {
		words = append(words, a.SearchWords(query)...)
	}
	err = a.Ask(r.Context(), out, words)
	f.ended, _ = errors.AsType[*paging.Ended](err)
	switch {
	case errors.Is(err, errEnough), f.ended != nil:
	case a.MayBeArchived(r, err), errors.Is(err, archive.ErrMissing): // there is something, elsewhere
		return f, err
	case err != nil && a.Nothing(err) && (res.form != one || res.verb == "owner" && out.Len() > 0):
		if res.form != one { // that there was no owner is an answer
			out.Reset()
		}
	case err != nil:
		return f, err
	}
	err = nil
	f.Lines = bytes.SplitAfter(out.Bytes(), []byte("\n"))
	f.Lines = f.Lines[:len(f.Lines)-1] // what follows the last newline is empty
	for i, line := range f.Lines {
		if f.Lines[i], err = res.withhold(r.Context(), line); err != nil {
			return f, err
		}
	}
	var more []byte // the first line of the next page
	if limit > 0 && len(f.Lines) > limit {
		f.Lines, more, f.ended = f.Lines[:limit], f.Lines[limit], nil
	}
	if f.absent, err = a.absent(r.Context(), res, query); err != nil {
		return f, err
	}
	next, err := a.next(r.Context(), res, query, f, more)
	if next != nil {
		f.next = a.Door.Prefix.At(r.URL.Path + "?" + next.Encode())
	}
	return f, err
}

// pinned is query with the time that its parameter at names, so that the pages of a list that begin with
// at=-1h are all of one moment.
func (a *API) pinned(query url.Values) url.Values {
	when, err := cli.ParseWhen("at", query.Get("at"), a.Now())
	if err != nil || when.ByPos || len(query["at"]) > 1 {
		return query
	}
	query = Cloned(query)
	query.Set("at", event.FormatTime(when.Time))
	return query
}

// SearchWords are the words for the time of a search, if query is one that can go on where it ended.
func (a *API) SearchWords(query url.Values) []string {
	if query.Get("by") == "finished" {
		return nil
	}
	return []string{"--search-time=" + cmp.Or(a.Search, SearchTime).String()}
}

// answer sends what the verb of res prints.
func (a *API) answer(w http.ResponseWriter, r *http.Request, res Resource) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return ErrQuery
	}
	if streams := res.streamsIf(); streams != nil && streams(r) {
		return a.sendWhole(w, r, res, query)
	}
	f, err := a.Find(r, res, query)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Jobledger-Pos", strconv.FormatInt(f.pos, 10))
	h.Set("Cache-Control", "private, no-cache") // it may be kept, and is asked for again by its tag
	setAbsent(h, f.absent)
	if f.next != "" {
		h.Set("Link", "<"+f.next+`>; rel="next"`)
	}
	switch {
	case res.form == one:
		h.Set("Content-Type", "application/json")
		line := bytes.Join(f.Lines[:min(1, len(f.Lines))], nil)
		if res.verb == "show" && !query.Has("at") {
			if err := setJobTag(h, line); err != nil {
				return err
			}
		}
		return door.Send(w, line)
	case wantsLines(r):
		h.Set("Content-Type", "application/x-ndjson")
		return door.Send(w, bytes.Join(f.Lines, nil))
	}
	return sendItems(w, f.Lines, f.next, searchedOf(r.Context(), f.ended), absentOf(f.absent))
}

// ErrQuery means that the query of an address is none.
var ErrQuery = door.Refusal(http.StatusBadRequest, "usage", "the query of the address cannot be read")

// Nothing reports whether err means that there is nothing, which is no error of a list.
func (a *API) Nothing(err error) bool { return a.Door.ProblemOf(err).Code == "nothing" }

// next returns the query of the page after f, of res with query, which is followed by the line more; nil
// where there is none, or no parameter can name it.
func (a *API) next(ctx context.Context, res Resource, query url.Values, f Found, more []byte) (url.Values,
	error) {
	var line struct {
		Pos int64       `json:"pos"`
		ID  event.JobID `json:"id"`
	}
	switch {
	case more == nil:
	case res.form == events:
		if err := json.Unmarshal(f.Lines[len(f.Lines)-1], &line); err != nil {
			return nil, fmt.Errorf("read an event: %w", err)
		}
		query = Cloned(query)
		query.Set("after", strconv.FormatInt(line.Pos, 10))
		return query, nil
	default:
		if err := json.Unmarshal(more, &line); err != nil {
			return nil, fmt.Errorf("read a job: %w", err)
		}
	}
	return a.NextJobs(ctx, query, string(line.ID), f.ended)
}

// NextJobs returns the query of the page of jobs after that of query. It begins with the job first, which had
// no room; where that is "", with the job at which the search ended before its end. It is nil where there is
// no next page, and where no parameter can name it, which is so for jobs by the time at which they finished.
func (a *API) NextJobs(ctx context.Context, query url.Values, first string, ended *paging.Ended) (
	next url.Values, err error) {
	var pos int64
	switch {
	case first == "" && ended == nil, first != "" && query.Get("by") == "finished":
		return nil, nil
	case first == "":
		pos = ended.Reached
	default:
		err = a.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
			pos, err = jobref.Ref{ID: first}.Number(ctx, tx)
			return err
		})
	}
	next = Cloned(query)
	next.Set("to", fmt.Sprintf("pos:%d", pos))
	return next, err
}

// Tail is the position of the last event.
func (a *API) Tail(ctx context.Context) (pos int64, err error) {
	err = a.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		pos, err = tx.Tail(ctx)
		return err
	})
	return pos, err
}

// searched is how far a search came in its time.
type searched struct {
	Jobs *int64 `json:"jobs,omitempty"` // the newest so many, and of how many: of all queues
	Of   *int64 `json:"of,omitempty"`
	To   string `json:"to"` // where it goes on
}

// searchedOf is ended as the caller of ctx may see it; nil: the search came to its end.
func searchedOf(ctx context.Context, ended *paging.Ended) *searched {
	if ended == nil {
		return nil
	}
	s := &searched{To: fmt.Sprintf("pos:%d", ended.Reached)}
	if door.CallerOf(ctx).AllQueues() {
		s.Jobs, s.Of = &ended.Looked, &ended.Jobs
	}
	return s
}

// sendItems sends lines of JSON as an object with items, the address of the next page or null, how far a
// search came unless that is nil, and which jobs are not in it unless that is nil.
func sendItems(w http.ResponseWriter, lines [][]byte, next string, far *searched, absent *absentJSON) error {
	var body bytes.Buffer
	body.WriteString(`{"items":[`)
	for i, line := range lines {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteByte('\n')
		body.Write(bytes.TrimSuffix(line, []byte("\n")))
	}
	address := []byte("null")
	if next != "" {
		var err error
		if address, err = json.Marshal(next); err != nil {
			return err
		}
	}
	body.WriteString("],\n\"next\":")
	body.Write(address)
	if far != nil {
		text, err := json.Marshal(far)
		if err != nil {
			return err
		}
		body.WriteString(",\n\"searched\":")
		body.Write(text)
	}
	if absent != nil {
		text, err := json.Marshal(absent)
		if err != nil {
			return err
		}
		body.WriteString(",\n\"left\":")
		body.Write(text)
	}
	body.WriteString("}\n")
	w.Header().Set("Content-Type", "application/json")
	return door.Send(w, body.Bytes())
}

// errEnough ends a verb whose first line is all that is wanted.
var errEnough = errors.New("web: the first line is there")

// answerBuffer holds what a verb prints, up to door.MaxAnswer bytes.
type answerBuffer struct {
	bytes.Buffer
	first bool // only the first line is wanted
}

func (b *answerBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > door.MaxAnswer {
		return 0, door.ErrTooLarge
	}
	n, _ := b.Buffer.Write(p)
	if b.first && bytes.IndexByte(p, '\n') >= 0 {
		return n, errEnough
	}
	return n, nil
}

// QueryOf returns the parameters of a page. A form sends a field that is empty, which means that it is not
// given.
func QueryOf(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, ErrQuery
	}
	for name, values := range query {
		values = slices.DeleteFunc(values, func(v string) bool { return strings.TrimSpace(v) == "" })
		if query[name] = values; len(values) == 0 {
			delete(query, name)
		}
	}
	return query, nil
}

// ResourceAt is the resource at a path below Root.
func ResourceAt(path string) Resource {
	return Resources[slices.IndexFunc(Resources, func(r Resource) bool { return r.Path == path })]
}
