package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/page"
	"jobledger/cmd/jobledger/internal/web/queues"
	"jobledger/cmd/jobledger/internal/web/send"
	"jobledger/cmd/jobledger/internal/web/then"
	"jobledger/cmd/jobledger/internal/web/timetable"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/commands/archive"
	"jobledger/ledger"
)

// wholeWait is for how long a request of a program waits until what has left the ledger is read.
const wholeWait = 25 * time.Second

// errReading means that the copy is being made.
var errReading = door.Refusal(http.StatusServiceUnavailable, "busy",
	"a part of what is asked for is in the archive, which is being read: ask again; a page does so itself")

// handle answers a request.
type handle = func(http.ResponseWriter, *http.Request) error

// reading opens the copy of the ledger that includes what is archived.
type reading struct {
	archive.Reader
	turn chan struct{} // one at a time, for all who ask
	ctx  context.Context
	stop context.CancelFunc
}

// newReading returns what reads the archive of the ledger that c serves. Close it.
func newReading(c Config) *reading {
	r := &reading{Reader: archive.Reader{Store: c.Store, Dir: c.Archive, Cache: c.ArchiveCache},
		turn: make(chan struct{}, 1)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// close waits for what is under way.
func (r *reading) close() {
	if r != nil {
		r.stop()
		r.turn <- struct{}{}
	}
}

// open opens the copy. Where ctx ends before that is done, it goes on for those who ask later.
func (r *reading) open(ctx context.Context) (*ledger.Store, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	type opened struct {
		store *ledger.Store
		err   error
	}
	done := make(chan opened)
	go func() {
		defer func() { <-r.turn }()
		store, err := r.Open(r.ctx)
		if r.ctx.Err() != nil && err != nil {
			err = ledger.ErrClosed
		}
		select {
		case done <- opened{store, err}:
		case <-ctx.Done():
			if err == nil {
				_ = store.Close() // it was only read
			}
		}
	}()
	select {
	case is := <-done:
		return is.store, is.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// alsoArchived returns routes whose read-only ones also answer about what has left the ledger, if the archive
// is known: a question that the ledger cannot answer is put to a copy from which nothing has left.
func (s *Server) alsoArchived(routes []door.Route) []door.Route {
	if s.reading == nil {
		return routes
	}
	for i, rt := range routes {
		endless := rt.Streams && rt.Pattern != "GET "+send.ExportPath
		if rt.Needs != door.Read || endless || !strings.HasPrefix(rt.Pattern, "GET ") {
			continue
		}
		routes[i].Handle = func(w http.ResponseWriter, r *http.Request) error {
			err := rt.Handle(w, r)
			if !s.api.MayBeArchived(r, err) {
				return err
			}
			return s.onCopy(w, r, rt)
		}
	}
	return routes
}

// onCopy answers r, a request for rt, from the copy. If the copy is not ready in time, it serves those who
// ask again.
func (s *Server) onCopy(w http.ResponseWriter, r *http.Request, rt door.Route) error {
	wait := wholeWait
	if rt.Page {
		wait = s.Times.Archive
	}
	waiting, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	store, err := s.reading.open(waiting)
	switch {
	case err == nil:
		defer store.Close()
		return s.handleOn(store, rt.Pattern)(w, r.WithContext(door.Reading(r.Context())))
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case rt.Page:
		w.Header().Set("Refresh", "2")
	}
	return errReading
}

// handleOn returns the handler of a pattern that answers from a copy.
func (s *Server) handleOn(store *ledger.Store, pattern string) handle {
	config := s.api.Config
	config.Store, config.Archive = store, ""
	config.Moments, config.Figures = new(view.Moments), new(view.Now)
	site := &frame.Site{API: api.New(config), Ledgers: s.pages.Ledgers, Name: s.pages.Name}
	pages := &page.Pages{Site: site, Acts: s.pages.Acts}
	routes := readers(pages)
	return routes[slices.IndexFunc(routes, func(rt door.Route) bool { return rt.Pattern == pattern })].Handle
}

// readers are the routes with which a ledger is looked at.
func readers(pages *page.Pages) []door.Route {
	past := &then.Pages{Site: pages.Site}
	of := &queues.Pages{Site: pages.Site, Acts: pages.Acts}
	timed := &timetable.Pages{Site: pages.Site, Acts: pages.Acts}
	return slices.Concat(pages.API.Routes(), send.New(pages.API).Routes(), pages.Routes(), of.Routes(),
		timed.Routes(), past.Routes(), pages.FrameRoutes())
}
