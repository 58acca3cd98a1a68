package act

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/projection/defaults"
	"jobledger/projection/limit"
)

// limitBody has all limits of a queue; what it leaves out is not limited.
type limitBody struct {
	exceptionBody
	PerGroup     int     `json:"per_group,omitempty" openapi:"maximum=1000000"` // jobs of each group at once
	GroupRate    int     `json:"group_rate,omitempty"`                          // starts of each group
	GroupRatePer float64 `json:"group_rate_per,omitempty"`                      // seconds
	GroupBurst   int     `json:"group_burst,omitempty"`                         // at once after a pause
	Ageing       float64 `json:"ageing,omitempty"`                              // seconds
}

// exceptionBody has the limits of one group that differ from those of the others.
type exceptionBody struct {
	reason
	Running int     `json:"running,omitempty" openapi:"maximum=1000000"` // jobs at work at once
	Rate    int     `json:"rate,omitempty"`                              // jobs that start
	RatePer float64 `json:"rate_per,omitempty"`                          // seconds
	Burst   int     `json:"burst,omitempty"`                             // at once after a pause
}

// defaultsBody has the defaults for the jobs of a queue; a field that is left out has no default.
type defaultsBody struct {
	reason
	MaxAttempts int           `json:"max_attempts,omitempty"`
	MaxRuntime  float64       `json:"max_runtime,omitempty"` // seconds
	Backoff     *wire.Backoff `json:"backoff,omitempty"`
}

// settingRoutes are the routes of the settings of a queue.
func (a *Acts) settingRoutes() (routes []door.Route) {
	const (
		limits = api.Root + "/queues/{queue}/limit"
		groups = api.Root + "/queues/{queue}/groups/{group}/limit"
		all    = api.Root + "/queues/{queue}/defaults"
	)
	add := func(pattern string, needs door.Right, do func(*http.Request, Setting) (any, int64, error),
		doc door.Doc) {
		if needs == door.Operate {
			doc.Headers, doc.Gives = []string{"If-Match"}, []string{"ETag"}
			doc.Refuses = []int{http.StatusPreconditionFailed}
		}
		routes = append(routes, door.Route{Pattern: pattern, Needs: needs, Queues: true, MaxBody: maxBody, Doc: doc,
			Handle: func(w http.ResponseWriter, r *http.Request) error {
				s, err := settingOf(r, needs)
				if err != nil {
					return err
				}
				value, pos, err := do(r, s)
				if err != nil {
					return err
				}
				line, err := json.Marshal(value)
				api.SetTag(w.Header(), pos, line)
				return cmp.Or(err, a.send(w, r, value))
			}})
	}
	add("GET "+limits, door.Read, a.getLimit, door.Doc{ID: "getLimit", Answer: print.LimitedJSON{},
		Summary: "The limits of a queue, as the command limit prints them; null: it is not limited. The ETag is " +
			"for If-Match."})
	add("PUT "+limits, door.Operate, a.putLimit, door.Doc{ID: "putLimit", Body: limitBody{},
		Answer: print.LimitSetJSON{}, Example: `{"running": 3, "reason": "the API takes three calls at a time"}`,
		Summary: "Bounds how many jobs of a queue run at once and start within a time. It names everything: what " +
			"it leaves out is not limited any more."})
	add("DELETE "+limits, door.Operate, a.deleteLimit, door.Doc{ID: "deleteLimit", Query: []string{"reason"},
		Answer: print.LimitSetJSON{}, Summary: "Takes the limits of a queue away, with its exceptions."})
	add("PUT "+groups, door.Operate, a.putLimit, door.Doc{ID: "putGroupLimit", Body: exceptionBody{},
		Answer: print.ExceptionSetJSON{}, Example: `{"running": 6, "reason": "acme has paid for more"}`,
		Summary: "Sets the limits of one group of a queue, which replace those of every group for it."})
	add("DELETE "+groups, door.Operate, a.deleteLimit, door.Doc{ID: "deleteGroupLimit",
		Query: []string{"reason"}, Answer: print.ExceptionSetJSON{},
		Summary: "Takes the exception of a group away."})
	add("GET "+all, door.Read, a.getDefaults, door.Doc{ID: "getDefaults", Answer: print.DefaultsJSON{},
		Summary: "What the jobs of a queue get by default, as the command queue show prints it. The ETag is for " +
			"If-Match."})
	add("PUT "+all, door.Operate, a.putDefaults, door.Doc{ID: "putDefaults", Body: defaultsBody{},
		Answer: print.DefaultsSetJSON{}, Example: `{"max_attempts": 8, "max_runtime": 300, "reason": "it is slow"}`,
		Summary: "Sets what the jobs of a queue get that are enqueued from now on and set nothing themselves. It " +
			"names everything: what it leaves out is as without defaults."})
	add("DELETE "+all, door.Operate, a.deleteDefaults, door.Doc{ID: "deleteDefaults",
		Query: []string{"reason"}, Answer: print.DefaultsSetJSON{},
		Summary: "Takes the defaults of a queue away."})
	return routes
}

// settingOf is what a request is about.
func settingOf(r *http.Request, needs door.Right) (s Setting, err error) {
	s = Setting{Queue: r.PathValue("queue"), Group: r.PathValue("group")}
	if err = cmp.Or(commands.CheckQueue(s.Queue), check(r.Context(), needs, s.Queue)); err != nil {
		return s, err
	}
	var names []string
	if r.Method == http.MethodDelete {
		names = []string{"reason"}
	}
	params, err := api.ReadParams(r, names)
	if err != nil {
		return s, err
	}
	s.Reason = params.Get("reason")
	header := r.Header.Get("If-Match")
	if number, _, _ := strings.Cut(strings.Trim(header, `"`), "."); number == "0" { // it was never set
		s.Seen = []int64{0}
		return s, nil
	}
	s.Seen, err = api.SeqsOf(header)
	return s, err
}

func (a *Acts) getLimit(r *http.Request, s Setting) (any, int64, error) {
	l, pos, err := a.limitNow(r.Context(), s.Queue)
	return print.NewLimitedJSON(l), pos, err
}

func (a *Acts) putLimit(r *http.Request, s Setting) (any, int64, error) {
	var body limitBody
	asked := any(&body)
	if s.Group != "" {
		asked = &body.exceptionBody
	}
	if err := read(r, asked); err != nil {
		return nil, 0, err
	}
	s.Reason = body.Reason
	to := limit.Spec{Running: body.Running, PerGroup: body.PerGroup, Rate: limit.Rate{N: body.Rate,
		Burst: body.Burst}, PerGroupRate: limit.Rate{N: body.GroupRate, Burst: body.GroupBurst}}
	var bad [3]error
	to.Rate.Per, bad[0] = wire.Duration("rate_per", body.RatePer)
	to.PerGroupRate.Per, bad[1] = wire.Duration("group_rate_per", body.GroupRatePer)
	to.Ageing, bad[2] = wire.Duration("ageing", body.Ageing)
	if err := cmp.Or(bad[:]...); err != nil {
		return nil, 0, err
	}
	return a.setLimit(r, s, to)
}

func (a *Acts) deleteLimit(r *http.Request, s Setting) (any, int64, error) {
	return a.setLimit(r, s, limit.Spec{})
}

// setLimit sets what bounds the queue, or the group, and returns what does then.
func (a *Acts) setLimit(r *http.Request, s Setting, to limit.Spec) (_ any, pos int64, err error) {
	var changed bool
	if s.Group != "" {
		changed, err = a.LimitGroup(r.Context(), s, limit.GroupSpec{Running: to.Running, Rate: to.Rate})
	} else {
		changed, err = a.Limit(r.Context(), s, to)
	}
	if err != nil {
		return nil, 0, err
	}
	l, pos, err := a.limitNow(r.Context(), s.Queue)
	if s.Group != "" {
		return print.NewExceptionSetJSON(l.Limit, s.Group, l.Groups[s.Group], changed), pos, err
	}
	return print.LimitSetJSON{LimitJSON: print.NewLimitJSON(l.Limit), Changed: changed}, pos, err
}

func (a *Acts) getDefaults(r *http.Request, s Setting) (any, int64, error) {
	d, pos, err := a.defaultsNow(r.Context(), s.Queue)
	return print.NewDefaultsJSON(d), pos, err
}

func (a *Acts) putDefaults(r *http.Request, s Setting) (any, int64, error) {
	var body defaultsBody
	if err := read(r, &body); err != nil {
		return nil, 0, err
	}
	s.Reason = body.Reason
	to := defaults.Spec{MaxAttempts: body.MaxAttempts}
	var bad [3]error
	to.MaxRuntime, bad[0] = wire.Duration("max_runtime", body.MaxRuntime)
	if b := body.Backoff; b != nil {
		to.Backoff.Factor = b.Factor
		to.Backoff.Min, bad[1] = wire.Duration("backoff", b.Min)
		to.Backoff.Max, bad[2] = wire.Duration("backoff", b.Max)
	}
	if err := cmp.Or(bad[:]...); err != nil {
		return nil, 0, err
	}
	return a.setDefaults(r, s, to)
}

func (a *Acts) deleteDefaults(r *http.Request, s Setting) (any, int64, error) {
	return a.setDefaults(r, s, defaults.Spec{})
}

// setDefaults sets the defaults of the queue, and returns the new ones.
func (a *Acts) setDefaults(r *http.Request, s Setting, to defaults.Spec) (any, int64, error) {
	changed, err := a.Defaults(r.Context(), s, to)
	if err != nil {
		return nil, 0, err
	}
	d, pos, err := a.defaultsNow(r.Context(), s.Queue)
	return print.DefaultsSetJSON{DefaultsJSON: print.NewDefaultsJSON(d), Changed: changed}, pos, err
}
