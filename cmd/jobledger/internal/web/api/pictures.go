package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// pictureRoutes are the resources for pictures.
func (a *API) pictureRoutes() []door.Route {
	return []door.Route{
		{Pattern: "GET " + Root + "/lanes", Needs: door.Read, Long: true, Queues: true,
			Handle: a.spanned(LaneParams, readLanes), Doc: door.Doc{ID: "getLanes", Query: LaneParams,
				Answer: lanesJSON{}, Summary: "The claims of a window by worker, in columns, as a picture needs them."}},
		{Pattern: "GET " + Root + "/moments", Needs: door.Read, Handle: a.moments, Doc: door.Doc{ID: "listMoments",
			Query: MomentParams, Answer: momentsJSON{}, Summary: "Where in the ledger something went wrong."}},
		{Pattern: "GET " + Root + "/series", Needs: door.Read, Long: true, Queues: true,
			Handle: a.spanned(SeriesParams, readSeries, "metric"), Doc: door.Doc{ID: "getSeries", Query: SeriesParams,
				Answer: seriesJSON{}, Summary: "What a queue did within a window, step by step."}},
		{Pattern: "GET " + Root + "/depth", Needs: door.Read, Long: true, Queues: true, Handle: a.depth,
			Doc: door.Doc{ID: "getDepth", Query: DepthParams, Answer: depthJSON{},
				Summary: "How many jobs had not ended at some moments of a window."}},
		{Pattern: "GET " + Root + "/failures", Needs: door.Read, Queues: true,
			Handle: a.spanned(FailureParams, readFailures), Doc: door.Doc{ID: "listFailures", Query: FailureParams,
				Answer: failuresJSON{}, Summary: "What failed within a window, by kind of failure."}},
		{Pattern: "GET " + Root + "/reports/{report}", Needs: door.Read, Long: true,
			Handle: a.spanned(ReportParams, a.readReport), Doc: door.Doc{ID: "getReport", Query: ReportParams,
				Answer: reportJSON{}, Summary: "What the command report answers about a window.",
				About: "Without from it is about the last six hours. A report has only those of the parameters that " +
					"the command has as flags: job goes with causes. In causes, no_worker is the part of waited in which " +
					"no worker process lived that takes the job; it is null for other causes than worker."}},
		{Pattern: "GET " + Root + "/diff", Needs: door.Read, Handle: a.spanned(DiffParams, readDiff),
			Doc: door.Doc{ID: "getDiff", Query: DiffParams, Answer: print.DiffJSON{},
				Summary: "What changed between two moments, as the command diff prints it."}},
		{Pattern: "GET " + Root + "/integrity", Needs: door.Read, Handle: a.integrity,
			Doc: door.Doc{ID: "getIntegrity", Answer: integrityJSON{}, Summary: "What was verified, and when."}},
		{Pattern: "POST " + Root + "/integrity/checks", Needs: door.Read | door.Operate, Handle: a.checkAll,
			Doc: door.Doc{ID: "startIntegrityCheck", Answer: integrityJSON{},
				Summary: "Has the whole ledger verified; the answer is what was verified before that.",
				Says:    map[int]string{200: "What was verified before, and when."}}},
		{Pattern: "GET " + Root + "/incident", Needs: door.Read, Long: true,
			Types: []string{"application/zip"}, Handle: a.incident, Doc: door.Doc{ID: "getIncident",
				Query: IncidentParams, Summary: "The folder that the command incident writes, as a zip file."}},
		{Pattern: "GET /events/{pos}", Needs: door.Read, Page: true, Handle: a.eventAt},
	}
}

// spanned answers with what read returns of the window that the query names, which has only params, each once
// but for many. A caller with a grant for some queues gets the window of one queue.
func (a *API) spanned(params []string,
	read func(r *http.Request, tx *ledger.Tx, s query.Lanes) (any, error), many ...string) (
	handle func(http.ResponseWriter, *http.Request) error) {
	return func(w http.ResponseWriter, r *http.Request) error {
		query, err := QueryOf(r)
		if err == nil {
			err = CheckParams(query, params, many...)
		}
		if err == nil {
			err = a.Within(r, query)
		}
		if err != nil {
			return err
		}
		var out any
		var pos int64
		err = a.Store.Read(r.Context(), func(tx *ledger.Tx) error {
			s, err := a.Span(r.Context(), tx, query)
			if err != nil {
				return err
			}
			if out, err = read(r, tx, s); err != nil {
				return err
			}
			pos, err = namedPos(r.Context(), tx, s)
			return err
		})
		if err != nil {
			return err
		}
		return sendJSON(w, pos, out)
	}
}

// readSeries reads the series of s, with the step and the metrics that r names, or all metrics.
func readSeries(r *http.Request, tx *ledger.Tx, s query.Lanes) (any, error) {
	given := r.URL.Query()
	for _, name := range given["metric"] {
		if !slices.Contains(query.Metrics, name) {
			return nil, door.BadInput("metric", fmt.Sprintf("there is no metric %.40q; there are: %s", name,
				strings.Join(query.Metrics, ", ")))
		}
	}
	step := time.Duration(0)
	if text := given.Get("step"); text != "" {
		var err error
		if step, err = when.DurationWithin(text, time.Second, maxStep, false); err != nil {
			return nil, door.BadInput("step", "step: "+err.Error())
		}
	}
	all, err := query.Series{Span: s.Span, Step: step}.Read(r.Context(), tx)
	if err != nil || !given.Has("metric") {
		return all, err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	var chosen map[string]json.RawMessage
	err = json.Unmarshal(text, &chosen)
	for _, name := range query.Metrics {
		if !slices.Contains(given["metric"], name) {
			delete(chosen, name)
		}
	}
	return chosen, err
}

// seriesJSON has the metrics of a series that were asked for.
type seriesJSON struct {
	query.Course `openapi:"optional=*;required=from,step"`
}

// maxStep is the longest step of series.
const maxStep = 31 * 24 * time.Hour

// DepthParams are the parameters of a depth.
var DepthParams = []string{"at", "from", "to", "queue", "px"}

// depth sends how many jobs had not ended at px moments of a window.
func (a *API) depth(w http.ResponseWriter, r *http.Request) error {
	params, err := ReadParams(r, DepthParams)
	if err == nil {
		_, err = WholeParam(params, "px", depthPoints, 1, maxDepthPoints)
	}
	if err != nil {
		return err
	}
	return a.spanned(DepthParams, func(r *http.Request, tx *ledger.Tx, s query.Lanes) (any, error) {
		d, err := readDepth(r.Context(), tx, s)
		if err == nil {
			d.Pos, err = namedPos(r.Context(), tx, s)
		}
		return d, err
	})(w, r)
}

// depthPoints is how many points a depth has, unless px says otherwise, and maxDepthPoints the most.
const (
	depthPoints    = 100
	maxDepthPoints = 1000
)

// depthJSON is how many jobs had not ended at some moments, in columns.
type depthJSON struct {
	Pos    int64       `json:"pos"`
	From   time.Time   `json:"from"`
	To     time.Time   `json:"to"`
	At     []time.Time `json:"at"`
	Queued []int64     `json:"queued"` // also those for later
	Held   []int64     `json:"held"`   // claimed or running
}

// readDepth reads the depth of the queue of s, or of all, at s.Columns points as far from each other, up to
// the end of s.
func readDepth(ctx context.Context, tx *ledger.Tx, s query.Lanes) (*depthJSON, error) {
	n := min(cmp.Or(s.Columns, depthPoints), maxDepthPoints)
	out := &depthJSON{Pos: s.To.Pos, From: s.From.At, To: s.To.At, At: make([]time.Time, n),
		Queued: make([]int64, n), Held: make([]int64, n)}
	for i := range n {
		out.At[i] = s.From.At.Add(s.Length() / time.Duration(n) * time.Duration(i+1)).Truncate(time.Microsecond)
	}
	out.At[n-1] = s.To.At
	depth, err := query.Depth{Span: s.Span, Moments: out.At, Merged: true}.Read(ctx, tx)
	for i, r := range depth {
		out.Queued[i], out.Held[i] = r.Queued(), r.Held
	}
	return out, err
}

// diffJobs is how many jobs of each cell a diff names, unless limit says another number.
const diffJobs = 5

func readDiff(r *http.Request, tx *ledger.Tx, s query.Lanes) (any, error) {
	limit, err := WholeParam(r.URL.Query(), "limit", diffJobs, 0, maxLimit)
	if err != nil {
		return nil, err
	}
	d, err := status.Compare(r.Context(), tx, s.From, s.To, limit)
	return print.NewDiffJSON(s.From, s.To, d), err
}

// failureJSON is a group of failures for programs.
type failureJSON struct {
	ID       string         `json:"id"` // the fingerprint, which failure and last_failure of /jobs take
	Queue    string         `json:"queue"`
	Code     string         `json:"error_code"`
	ExitCode *int           `json:"exit_code"`
	Signal   *string        `json:"signal"`
	Detail   string         `json:"detail"`  // the last line of the details, with … for what differs in it
	Example  string         `json:"example"` // the last line of one
	Attempts int64          `json:"attempts"`
	Jobs     int            `json:"jobs"`
	First    string         `json:"first"`
	Last     string         `json:"last"`
	LastPos  int64          `json:"last_pos"`
	Workers  map[string]int `json:"workers"`  // attempts by worker
	Versions map[string]int `json:"versions"` // attempts by the version of the worker
	// of the attempts of the queue that succeeded, failed or were taken back within the window
	Share      float64          `json:"share"`
	Steps      []int64          `json:"steps"`            // attempts in each of 48 steps of the window
	JobsNow    map[string]int64 `json:"jobs_now"`         // the jobs by their state; with at, as it was then
	LastFailed int64            `json:"last_failed_jobs"` // those of them that failed for good, last by this
}

// failuresJSON are the largest groups of failures.
type failuresJSON struct {
	Items []failureJSON `json:"items"`
	More  int           `json:"more"` // so many smaller groups are left out; there are at most 1000
}

// maxGroups is how many groups of failures there are at most, the largest ones.
const maxGroups = 1000

// FailureSteps is into how many steps a window of failures is divided.
const FailureSteps = 48

func readFailures(r *http.Request, tx *ledger.Tx, s query.Lanes) (any, error) {
	given, err := SwitchParam(r.URL.Query(), "given_up")
	if err != nil {
		return nil, err
	}
	found, err := query.Failures{Span: s.Span, By: query.ByCause, Limit: maxGroups, Steps: FailureSteps,
		Jobs: true, GivenUp: given}.Read(r.Context(), tx)
	out := failuresJSON{Items: []failureJSON{}, More: found.More}
	for _, g := range found.List {
		f := failureJSON{ID: g.ID, Queue: g.Queue, Code: g.Code, ExitCode: g.Exit.Code,
			Signal: words.TextOrNull(g.Exit.Signal), Detail: g.Detail, Example: g.Example, Attempts: g.Attempts,
			Jobs: len(g.Jobs), First: event.FormatTime(g.First), Last: event.FormatTime(g.Last), LastPos: g.LastPos,
			Workers: g.Workers, Versions: g.Versions, Share: g.Share(), Steps: g.Steps,
			JobsNow: make(map[string]int64), LastFailed: g.LastFailed}
		for state, n := range g.States {
			f.JobsNow[state.String()] = n
		}
		out.Items = append(out.Items, f)
	}
	return out, err
}
