package page

import (
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
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
	return append(p.Checked([]door.Route{
		{Pattern: "GET /{$}", Needs: door.Read, Handle: p.overview},
		{Pattern: "GET /ledgers", Needs: door.Read, Handle: p.ledgersPage},
		{Pattern: "GET /failures", Needs: door.Read, Handle: p.failuresPage},
		{Pattern: "GET /workers", Needs: door.Read, Handle: p.workersPage},
		{Pattern: "GET /workers/{worker}", Needs: door.Read, Long: true, Handle: p.workerPage},
		{Pattern: "GET /api", Needs: door.Any, Queues: true, Handle: p.apiPage},
		{Pattern: "GET /integrity", Needs: door.Read, Handle: p.integrityPage},
		{Pattern: "POST /integrity", Needs: door.Read | door.Operate, Handle: p.checkAll},
		{Pattern: "GET /jobs", Needs: door.Read, Long: true, Handle: p.jobsPage}, // a search, and the figures
		{Pattern: "GET /jobs/{job}", Needs: door.Read, Handle: p.jobPage},
	}), p.actRoutes()...)
}
