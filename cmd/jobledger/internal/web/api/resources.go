package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// Resource is an answer of the API that pages and programs ask for by the same parameters, those of its Doc.
type Resource struct {
	Path string   // below Root
	many []string // of the parameters: those that may be repeated
	form form
	read func(*API, *question) error
	Doc  door.Doc
}

// form is how a resource is answered.
type form int

const (
	list   form = iota // all of it
	one                // one object
	jobs               // pages of jobs, the newest first
	events             // pages of events, the oldest first
	claims             // pages of claims, the oldest first
)

// Resources are all of them.
var Resources = []Resource{
	{"/status", nil, list, (*API).readStatus, door.Doc{ID: "getStatus", Query: []string{"at"},
		Answer: print.StatusThenJSON{}, Gives: []string{"Jobledger-Left"},
		Summary: "The numbers of jobs of each queue, as the command status prints them."}},
	{"/queues", nil, list, (*API).readQueues, door.Doc{ID: "listQueues", Query: []string{"at", "paused"},
		Answer: print.QueueThenJSON{}, Summary: "The queues, as the command queues prints them."}},
	{"/limits", nil, list, (*API).readLimits, door.Doc{ID: "listLimits", Query: []string{"at"},
		Answer: print.LimitedThenJSON{}, Summary: "The limits of queues, as the command limit prints them."}},
	{"/defaults", nil, list, (*API).readDefaults, door.Doc{ID: "listDefaults", Query: []string{"at"},
		Answer:  print.DefaultsThenJSON{},
		Summary: "What the jobs of queues get by default, as the command queue show prints it."}},
	{"/workers", nil, list, (*API).readWorkers, door.Doc{ID: "listWorkers", Query: []string{"at", "all"},
		Answer: print.WorkerJSON{}, Summary: "The worker processes, as the command workers prints them."}},
	{"/jobs", []string{"queue", "state", "tag"}, jobs, (*API).readJobs, door.Doc{ID: "listJobs",
		Query: []string{"at", "queue", "state", "tag", "key", "group", "from", "to", "by", "error", "exit",
			"failure", "last_failure", "host", "find", "limit"}, Answer: print.ListedJobJSON{},
		Gives:   []string{"Jobledger-Left"},
		Summary: "Jobs, the newest first, as the command list prints them."}},
	{"/jobs/{job}", nil, one, (*API).readJob, door.Doc{ID: "getJob", Query: []string{"at"},
		Answer: print.WholeJobJSON{}, Summary: "A job with its payload and result, as the command show prints " +
			"it."}},
	{historyPath, nil, list, (*API).readHistory, door.Doc{ID: "listJobEvents", Query: []string{"at"},
		Answer: event.Event{}, Summary: "What happened to a job, as the command history prints it."}},
	{"/jobs/{job}/why", nil, one, (*API).readWhy, door.Doc{ID: "explainJob", Query: []string{"at"},
		Answer: print.WhyThenJSON{}, Summary: "Why a job is in its state, as the command why prints it."}},
	{"/jobs/{job}/dependencies", nil, one, (*API).readDependencies, door.Doc{ID: "getJobDependencies",
		Query: []string{"at", "depth"}, Answer: print.DependenciesJSON{},
		Summary: "What a job waited for and what waits for it, over several steps. A token of some queues gets " +
			"the jobs of these."}},
	{"/jobs/{job}/owner", nil, one, (*API).readOwner, door.Doc{ID: "getJobOwner", Query: []string{"at"},
		Answer:  print.OwnerJSON{},
		Summary: "Who held a job at a moment, as the command owner prints it; worker is null if none did."}},
	{"/attempts", []string{"outcome"}, claims, (*API).readAttempts, door.Doc{ID: "listAttempts",
		Query: []string{"at", "from", "to", "job", "queue", "worker", "outcome", "code", "overlap", "after",
			"limit"},
		About: FromArchive, Answer: print.AttemptJSON{},
		Summary: "Claims, the oldest first, as the command attempts prints them."}},
	{"/jobs/{job}/attempts", []string{"outcome"}, claims, (*API).readAttempts, door.Doc{ID: "listJobAttempts",
		Query: []string{"at", "outcome", "code", "overlap", "after", "limit"}, About: FromArchive,
		Answer:  print.AttemptJSON{},
		Summary: "The claims of a job, the oldest first, as the command attempts prints them."}},
	{"/events", []string{"kind"}, events, (*API).readEvents, door.Doc{ID: "listEvents",
		Query:  []string{"at", "job", "kind", "worker", "queue", "actor", "from", "to", "after", "last", "limit"},
		Answer: event.Event{}, Summary: "Events, the oldest first, as the command events prints them."}},
}

// FromArchive says where the answer to a question comes from that the ledger cannot answer.
const FromArchive = "What has left the ledger is read from the archive, if the server knows it; 503 " +
	"while that " +
	"is not done."

const historyPath = "/jobs/{job}/events"

// ResourceAt is the resource at a path below Root.
func ResourceAt(path string) Resource {
	return Resources[slices.IndexFunc(Resources, func(r Resource) bool { return r.Path == path })]
}

func (a *API) resourceRoutes() (routes []door.Route) {
	for _, res := range Resources {
		res.Doc.List = res.form != one
		routes = append(routes, door.Route{Pattern: "GET " + Root + res.Path, Needs: door.Read, Doc: res.Doc,
			Queues: res.ofQueues(), StreamsIf: res.streamsIf(),
			Handle: func(w http.ResponseWriter, r *http.Request) error { return a.answer(w, r, res) }})
	}
	return routes
}

// Asked is a request for a resource that another package answers.
type Asked struct {
	context.Context
	Request *http.Request
	Params  url.Values
	Tx      *ledger.Tx
	Past    query.Past // the moment that the parameter at names
}

// Resource is the route of a resource with the rows that read returns; without doc.List it is one object.
func (a *API) Resource(path string, doc door.Doc, read func(Asked) ([]any, error)) door.Route {
	res := Resource{Path: path, Doc: doc, form: one}
	if doc.List {
		res.form = list
	}
	res.read = func(a *API, q *question) error {
		return readAll(a, q, func(tx *ledger.Tx, past query.Past) ([]any, error) {
			return read(Asked{q, q.asked, q.params, tx, past})
		}, func(row any, _ query.Past) any { return row })
	}
	return door.Route{Pattern: "GET " + Root + path, Needs: door.Read, Doc: doc,
		Handle: func(w http.ResponseWriter, r *http.Request) error { return a.answer(w, r, res) }}
}

// octets are the media types of bytes that nothing is said about.
var octets = []string{"application/octet-stream"}

// question is a request for a resource, and what its answer has besides the rows.
type question struct {
	context.Context
	job    string // of the path
	asked  *http.Request
	params url.Values
	limit  int             // rows of the page; 0: all
	add    func(any) error // adds a row to the answer

	next   url.Values  // the parameters of the next page; nil: there is none
	ended  *find.Ended // the time of the search was over; nil: it was not
	absent projection.Absent
	seq    int64 // of the job that the answer is; 0: it is none
}

// Check returns an error unless params are those of res. limit is that of a page; 0: there are none.
func (res Resource) Check(params url.Values) (limit int, err error) {
	if err := checkGiven(params, res.Doc.Query, res.many...); err != nil {
		return 0, err
	}
	if err := checkQueue(params); err != nil {
		return 0, err
	}
	n := 0
	for _, name := range SortedNames(params) {
		if n += len(params[name]); n > maxParams {
			return 0, door.BadInput(name, fmt.Sprintf("more than %d parameters", maxParams))
		}
	}
	if _, err := WholeParam(params, "last", 0, 1, maxLimit); err != nil {
		return 0, err
	}
	switch {
	case params.Has("last") && params.Has("limit"):
		return 0, door.BadInput("limit", "last and limit cannot be combined")
	case res.form == jobs, res.form == claims, res.form == events && !params.Has("last"):
		return WholeParam(params, "limit", DefaultLimit, 1, maxLimit)
	}
	return 0, nil
}

// wholeList reports whether r asks for all of a list, as lines, and not for one page of it.
func wholeList(r *http.Request) bool {
	params := r.URL.Query()
	return wantsLines(r) && !params.Has("limit") && !params.Has("last")
}

// streamsIf says which requests for res are answered with all of a list, as it is read; nil: none.
func (res Resource) streamsIf() func(*http.Request) bool {
	if res.form > one || res.Path == historyPath {
		return wholeList
	}
	return nil
}

// now is the time, in the zone of the caller of ctx.
func (a *API) now(ctx context.Context) time.Time { return door.In(ctx, a.Now()) }

// pinned is params with the time that the parameter at names, so that the pages of a list that begin with
// at=-1h are all of one moment.
func (a *API) pinned(params url.Values) url.Values {
	moment, err := when.ReadWhen("at", params.Get("at"), a.Now())
	if err != nil || moment.ByPos || len(params["at"]) > 1 {
		return params
	}
	params = Cloned(params)
	params.Set("at", event.FormatTime(moment.Time))
	return params
}

// answer answers r with res: one page of it, or all of it while it is read.
func (a *API) answer(w http.ResponseWriter, r *http.Request, res Resource) error {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return ErrQuery
	}
	q := &question{Context: r.Context(), job: r.PathValue("job"), asked: r, params: a.pinned(params)}
	if q.limit, err = res.Check(q.params); err == nil && strings.Contains(res.Path, "{job}") {
		err = checkJob(q.job)
	}
	if err == nil && res.ofQueues() {
		err = a.Within(r, q.params)
	}
	if err != nil {
		return err
	}
	pos, err := a.Tail(r.Context())
	if err != nil {
		return err
	}
	if q.absent, err = a.absent(r.Context(), res, q.params); err != nil {
		return err
	}
	h := w.Header()
	if streams := res.streamsIf(); streams != nil && streams(r) {
		q.limit = 0
		setAbsent(h, q.absent)
		return a.SendLines(w, r, pos, func(ctx context.Context, out io.Writer) error {
			q.Context = ctx
			q.add = func(row any) error {
				line, err := words.JSONLine(row)
				if err == nil {
					_, err = out.Write(line)
				}
				return err
			}
			return res.read(a, q)
		})
	}
	var lines [][]byte
	size := 0
	q.add = func(row any) error {
		line, err := words.JSONLine(row)
		if lines, size = append(lines, line), size+len(line); size > door.MaxAnswer {
			return door.ErrTooLarge
		}
		return err
	}
	if err := res.read(a, q); err != nil {
		return err
	}
	h.Set("Jobledger-Pos", strconv.FormatInt(pos, 10))
	h.Set("Cache-Control", "private, no-cache") // it may be kept, and is asked for again by its tag
	setAbsent(h, q.absent)
	page := Page{Searched: searchedOf(r.Context(), q.ended), Left: leftOf(q.absent)}
	if q.next != nil {
		next := a.Door.Prefix.At(r.URL.Path + "?" + q.next.Encode())
		h.Set("Link", "<"+next+`>; rel="next"`)
		page.Next = &next
	}
	switch {
	case res.form == one:
		h.Set("Content-Type", "application/json")
		if q.seq > 0 {
			SetTag(h, q.seq, lines[0])
		}
		return door.Send(w, lines[0])
	case wantsLines(r):
		h.Set("Content-Type", "application/x-ndjson")
		return door.Send(w, bytes.Join(lines, nil))
	}
	return sendItems(w, lines, page)
}

// Past reads the parameter at. Without it, a copy as of a moment answers about its own moment.
func (a *API) Past(ctx context.Context, tx *ledger.Tx, params url.Values) (query.Past, error) {
	now := a.now(ctx)
	if params.Get("at") == "" {
		return query.ReadPast(ctx, tx, nil, now)
	}
	moment, err := when.ReadWhen("at", params.Get("at"), now)
	if err != nil {
		return query.Past{}, err
	}
	return query.ReadPast(ctx, tx, &moment, now)
}

// asOf is the moment that the parameter at names; nil: now, also in a copy.
func (a *API) asOf(ctx context.Context, tx *ledger.Tx, params url.Values) (*projection.Moment, error) {
	if params.Get("at") == "" {
		return nil, nil
	}
	past, err := a.Past(ctx, tx, params)
	return past.AsOf(), err
}

// readAll adds what find returns of one snapshot, each converted by row: now, or as of the parameter at.
func readAll[T any](a *API, q *question, find func(*ledger.Tx, query.Past) ([]T, error),
	row func(T, query.Past) any) error {
	var found []T
	var past query.Past
	err := a.Store.Read(q, func(tx *ledger.Tx) (err error) {
		if past, err = a.Past(q, tx, q.params); err == nil {
			found, err = find(tx, past)
		}
		return err
	})
	for _, one := range found {
		if err == nil {
			err = q.add(row(one, past))
		}
	}
	return err
}

func (a *API) readStatus(q *question) error {
	now := a.now(q)
	return readAll(a, q, func(tx *ledger.Tx, past query.Past) ([]status.Queue, error) {
		return status.Queues{At: past.Or(now)}.Read(q, tx)
	}, func(one status.Queue, past query.Past) any { return print.StatusJSON(one, past, now) })
}

func (a *API) readQueues(q *question) error {
	paused, err := SwitchParam(q.params, "paused")
	if err != nil {
		return err
	}
	return readAll(a, q, func(tx *ledger.Tx, past query.Past) ([]projection.Queue, error) {
		return query.Queues{At: past.AsOf(), Paused: paused}.Read(q, tx)
	}, print.QueueJSONOf)
}

func (a *API) readLimits(q *question) error {
	return readAll(a, q, func(tx *ledger.Tx, past query.Past) ([]status.Limited, error) {
		return status.Limits(q, tx, past.Or(a.now(q)))
	}, func(one status.Limited, past query.Past) any {
		if past.Given {
			return print.NewLimitedThenJSON(one, past.Moment)
		}
		return print.NewLimitedJSON(one)
	})
}

func (a *API) readDefaults(q *question) error {
	return readAll(a, q, func(tx *ledger.Tx, past query.Past) ([]defaults.Defaults, error) {
		set, err := defaults.At(q, tx, past.Or(a.now(q)).Pos)
		return set.List(), err
	}, func(one defaults.Defaults, past query.Past) any {
		if past.Given {
			return print.NewDefaultsThenJSON(one, past.Moment)
		}
		return print.NewDefaultsJSON(one)
	})
}

func (a *API) readWorkers(q *question) error {
	all, err := SwitchParam(q.params, "all")
	if err != nil {
		return err
	}
	return readAll(a, q, func(tx *ledger.Tx, past query.Past) ([]status.Worker, error) {
		return status.Workers{At: past.Or(a.now(q)), All: all}.Read(q, tx)
	}, func(one status.Worker, _ query.Past) any { return print.NewWorkerJSON(one) })
}
