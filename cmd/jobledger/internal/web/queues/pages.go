package queues

import (
	"net/http"
	"net/url"
	"strings"

	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/commands"
)

// Pages has the handlers of the pages. It is safe for concurrent use.
type Pages struct {
	*frame.Site
	Acts *act.Acts
}

// Routes are those of the pages. Each request has pages of its own, with its zone.
func (p *Pages) Routes() []door.Route {
	return p.Site.InZone(func(s *frame.Site) []door.Route { return (&Pages{Site: s, Acts: p.Acts}).routes() })
}

// routes are those of the pages in the zone that p has.
func (p *Pages) routes() []door.Route {
	const acts = door.Read | door.Operate
	return append(p.Checked([]door.Route{
		{Pattern: "GET /queues", Needs: door.Read, Handle: p.list},
		{Pattern: "GET /queues/{queue}", Needs: door.Read, Long: true, Handle: p.queuePage},
		{Pattern: "GET /queues/{queue}/limit", Needs: acts, Handle: p.limitPage},
		{Pattern: "GET /queues/{queue}/defaults", Needs: acts, Handle: p.defaultsPage},
	}),
		door.Route{Pattern: "POST /queues/{queue}/limit", Needs: acts, Page: true, Handle: p.limitPage},
		door.Route{Pattern: "POST /queues/{queue}/defaults", Needs: acts, Page: true, Handle: p.defaultsPage},
		door.Route{Pattern: "POST /queues/{queue}/pause", Needs: acts, Page: true, Handle: p.act("pause")},
		door.Route{Pattern: "POST /queues/{queue}/resume", Needs: acts, Page: true, Handle: p.act("resume")})
}

// act pauses or resumes a queue.
func (p *Pages) act(verb string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		given, err := frame.Form(r)
		if err != nil {
			return err
		}
		reason := strings.TrimSpace(given.Get("reason"))
		if reason == "" {
			return frame.ErrReason
		}
		if _, err := p.Acts.Queue(r.Context(), verb, r.PathValue("queue"), reason); err != nil {
			return err
		}
		p.Door.SeeOther(w, r, pathOf(r.PathValue("queue")))
		return nil
	}
}

// pathOf is the address of the page of a queue.
func pathOf(queue string) string { return "/queues/" + url.PathEscape(queue) }

// settingPage is the form of what is set of a queue, or of one of its groups.
func (p *Pages) settingPage(w http.ResponseWriter, r *http.Request, title, group string,
	s frame.Setting) error {
	queue := r.PathValue("queue")
	if err := commands.CheckQueue(queue); err != nil {
		return err
	}
	return p.SettingPage(w, r, title+" "+queue, group, pathOf(queue), s)
}

// groupOf is the group that a form sets; "": it sets the queue.
func groupOf(r *http.Request) (string, error) {
	query, err := api.QueryOf(r)
	return query.Get("group"), err
}
