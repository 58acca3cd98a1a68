package api

import (
	"net/http"

	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/history"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/status"
)

// pictureRoutes are the resources for pictures.
func (a *API) pictureRoutes() []door.Route {
	return []door.Route{
		{Pattern: "GET " + Root + "/lanes", Needs: door.Read, Long: true, Queues: true, Handle: a.lanes},
		{Pattern: "GET " + Root + "/moments", Needs: door.Read, Handle: a.moments},
		{Pattern: "GET " + Root + "/series", Needs: door.Read, Long: true, Queues: true,
			Handle: a.spanned(SeriesParams, readSeries)},
		{Pattern: "GET " + Root + "/depth", Needs: door.Read, Long: true, Queues: true, Handle: a.depth},
		{Pattern: "GET " + Root + "/failures", Needs: door.Read, Queues: true,
			Handle: a.spanned(FailureParams, readFailures)},
		{Pattern: "GET " + Root + "/diff", Needs: door.Read, Handle: a.spanned(DiffParams, readDiff)},
		{Pattern: "GET " + Root + "/integrity", Needs: door.Read, Handle: a.integrity},
		{Pattern: "POST " + Root + "/integrity/checks", Needs: door.Read | door.Operate, Handle: a.checkAll},
		{Pattern: "GET " + Root + "/incident", Needs: door.Read, Long: true, Handle: a.incident},
		{Pattern: "GET /events/{pos}", Needs: door.Read, Page: true, Handle: a.eventAt},
	}
}

// spanned answers with what read returns of the window that the query names, which has only params. Of a
// caller that is for some queues the window is that of one queue.
func (a *API) spanned(params []string,
	read func(r *http.Request, tx *ledger.Tx, s history.Span) (any, error)) (
	handle func(http.ResponseWriter, *http.Request) error) {
	return func(w http.ResponseWriter, r *http.Request) error {
		query, err := QueryOf(r)
		if err == nil {
			err = CheckParams(query, params)
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

func readSeries(r *http.Request, tx *ledger.Tx, s history.Span) (any, error) {
	return history.ReadSeries(r.Context(), tx, s)
}

// DepthParams are the parameters of a depth.
var DepthParams = []string{"at", "from", "to", "queue", "px"}

// depth sends how many jobs had not ended at px moments of a window.
func (a *API) depth(w http.ResponseWriter, r *http.Request) error {
	query, err := ReadParams(r, DepthParams)
	if err == nil {
		_, err = WholeParam(query, "px", history.DepthPoints, 1, history.MaxDepthPoints)
	}
	if err != nil {
		return err
	}
	return a.spanned(DepthParams, func(r *http.Request, tx *ledger.Tx, s history.Span) (any, error) {
		d, err := history.ReadDepth(r.Context(), tx, s)
		if err == nil {
			d.Pos, err = namedPos(r.Context(), tx, s)
		}
		return d, err
	})(w, r)
}

// diffJobs is how many jobs of each cell a diff names, unless limit says another number.
const diffJobs = 5

func readDiff(r *http.Request, tx *ledger.Tx, s history.Span) (any, error) {
	limit, err := WholeParam(r.URL.Query(), "limit", diffJobs, 0, maxLimit)
	if err != nil {
		return nil, err
	}
	d, err := status.Compare(r.Context(), tx, s.From, s.To, limit)
	return layout.NewDiffJSON(s.From, s.To, d), err
}

// failureJSON is a group of failures for programs.
type failureJSON struct {
	Queue    string         `json:"queue"`
	Code     string         `json:"error_code"`
	Detail   string         `json:"detail"`
	Example  string         `json:"example"`
	Attempts int            `json:"attempts"`
	Jobs     int            `json:"jobs"`
	First    string         `json:"first"`
	Last     string         `json:"last"`
	LastPos  int64          `json:"last_pos"`
	Workers  map[string]int `json:"workers"`
	Versions map[string]int `json:"versions"`
}

func readFailures(r *http.Request, tx *ledger.Tx, s history.Span) (any, error) {
	groups, err := history.Failures(r.Context(), tx, s)
	items := []failureJSON{}
	for _, g := range groups {
		items = append(items, failureJSON{g.Queue, g.Code, g.Detail, g.Example, g.Count, len(g.Jobs),
			event.FormatTime(g.First), event.FormatTime(g.Last), g.LastPos, g.Workers, g.Versions})
	}
	return map[string]any{"items": items}, err
}
