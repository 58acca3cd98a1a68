package frame

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
)

// Site is what the pages of a ledger have in common. It is safe for concurrent use.
type Site struct {
	*api.API
	// Ledgers are all ledgers that this process serves, if there are several.
	Ledgers []Ledger
	Name    string // the ledger, as pages call it

	Now func() time.Time // in the zone of the request, in place of that of the API
	tz  string           // the zone that the address of the request names; ""
}

// Ledger is one of several ledgers that one process serves.
type Ledger struct {
	Name    string
	Address string // of its pages: http://jobledger.localhost:4711
	API     *api.API
}

// InZone are the routes that of returns. Each request has a site of its own, with its zone.
func (p *Site) InZone(of func(*Site) []door.Route) []door.Route {
	routes := of(p)
	for i := range routes {
		routes[i].Handle = func(w http.ResponseWriter, r *http.Request) error {
			q, zoned, err := p.inZone(r)
			if err == nil {
				err = of(q)[i].Handle(w, zoned)
			}
			r.PostForm = zoned.PostForm // a page of the error has what was typed
			return err
		}
	}
	return routes
}

// FrameRoutes are those of what is around the pages: the login, the zone, and the files that pages load.
func (p *Site) FrameRoutes() []door.Route {
	return p.InZone(func(s *Site) []door.Route { return s.frameRoutes() })
}

func (p *Site) frameRoutes() []door.Route {
	return append(p.Checked([]door.Route{
		{Pattern: "GET /login", Handle: p.loginPage},
		{Pattern: "POST /login", Handle: p.login},
		{Pattern: "POST /login/link", Handle: p.newLink},
		{Pattern: "POST /logout", Needs: door.Read, Handle: p.logout},
		{Pattern: "GET /zone", Needs: door.Any, Queues: true, Handle: p.zonePage},
		{Pattern: "POST /zone", Needs: door.Any, Queues: true, Handle: p.setZone},
		{Pattern: "POST /look", Needs: door.Any, Queues: true, Handle: p.setLook},
	}),
		door.Route{Pattern: "GET /assets/{name}", Handle: p.asset},
		door.Route{Pattern: "/", Needs: door.Read, Handle: func(http.ResponseWriter, *http.Request) error {
			return door.Refusal(http.StatusNotFound, "no_resource", "there is nothing at this address")
		}})
}

// Checked are routes as those of pages: they refuse parameters that the page does not have, and lead to an
// address that stays about the moment that it names.
func (p *Site) Checked(routes []door.Route) []door.Route {
	for i := range routes {
		routes[i].Page = true
		params, ok := paramsOf[routes[i].Pattern]
		if strings.HasPrefix(routes[i].Pattern, "GET ") && (!ok || slices.Contains(params, "at")) {
			routes[i].Handle = p.fixed(routes[i].Handle)
		}
		if ok {
			routes[i].Handle = taking(params, routes[i].Handle)
		}
	}
	return routes
}

// paramsOf are the parameters of pages, each once. Pages that are not listed here have the parameters of a
// resource of the API, or no parameters.
var paramsOf = map[string][]string{"GET /login": {"next"}, "GET /{$}": {"at"}, "GET /ledgers": nil,
	"GET /api": nil, "GET /zone": {"back"},
	"GET /lanes": api.LanePageParams, "GET /failures": api.FailureParams, "GET /workers": {"at", "all"},
	"GET /workers/{worker}": {"at", "from", "to"}, "GET /queues/{queue}": {"at", "from", "to"},
	"GET /queues": {"at", "sort"}, "GET /queues/{queue}/limit": {"group"}, "GET /queues/{queue}/defaults": nil,
	"GET /diff":     {"at", "from", "to", "swap", "was", "is"},
	"GET /incident": {"at", "from", "to"}, "GET /integrity": {"at"},
	"GET /schedules": {"at"}, "GET /schedules/{schedule}": {"at", "act"}, "GET /new/schedule": nil,
	"GET /jobs/{job}": {"at"}, "GET /schedules/{schedule}/edit": nil,
	"GET /tail": {"kind", KindsParam, "queue", "job", "worker", "actor"}}

// taking refuses requests with other parameters than params.
func taking(params []string, handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter,
	*http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		query, err := api.QueryOf(r)
		if err == nil {
			err = api.CheckParams(query, params, "kind")
		}
		if err != nil {
			return err
		}
		return handle(w, r)
	}
}

// Form reads the form that r has.
func Form(r *http.Request) (url.Values, error) {
	switch err := r.ParseForm(); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, door.Refusal(http.StatusRequestTimeout, "slow", "the form did not arrive")
	case err != nil:
		return nil, door.Refusal(http.StatusBadRequest, "usage", "the form cannot be read")
	}
	return r.PostForm, nil
}

var ErrReason = door.BadInput("reason", "say why: the reason is empty")
