package then

import (
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
)

// Pages answers people who ask what happened. It is safe for concurrent use.
type Pages struct{ *frame.Site }

// Routes are those of the pages.
func (p *Pages) Routes() []door.Route {
	return p.Site.InZone(func(s *frame.Site) []door.Route { return (&Pages{s}).routes() })
}

// routes are those of the pages in the zone that p has.
func (p *Pages) routes() []door.Route {
	return append(p.Checked([]door.Route{
		{Pattern: "GET /lanes", Needs: door.Read, Long: true, Handle: p.lanesPage},
		{Pattern: "GET /diff", Needs: door.Read, Handle: p.diffPage},
		{Pattern: "GET /incident", Needs: door.Read, Long: true, Handle: p.incidentPage},
		{Pattern: "GET /events", Needs: door.Read, Handle: p.eventsPage},
		{Pattern: "GET /tail", Needs: door.Read, Handle: p.tailPage},
	}), door.Route{Pattern: "GET /tail/stream", Needs: door.Read, Streams: true, Handle: p.streamPage})
}
