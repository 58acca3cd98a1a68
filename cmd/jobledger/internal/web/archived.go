package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/page"
	"jobledger/cmd/jobledger/internal/web/send"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
)

// wholeWait is for how long a request of a program waits until what has left the ledger is read.
const wholeWait = 25 * time.Second

// errReading means that a whole copy is being made.
var (
	errReading = door.Refusal(http.StatusServiceUnavailable, "busy",
		"a part of what is asked for is in the archive, which is being read: ask again")
	errReadingPage = func() *door.Problem {
		p, hint := *errReading, "This page is loaded again until it is there."
		p.Detail = "A part of what this page is about is in the archive, which is being read."
		p.Hint = &hint
		return &p
	}()
)

// handle answers a request.
type handle = func(http.ResponseWriter, *http.Request) error

// copied has the routes that answer from the whole copy that was asked last.
type copied struct {
	mu      sync.Mutex
	store   *ledger.Store
	handles map[string]handle // by pattern
}

// alsoArchived returns routes so that those which only read also answer about what has left the ledger, where
// the archive is known: what the ledger cannot answer is asked of a copy as if nothing had left. The copy has
// no payloads, and is older than the ledger, so it is not asked what the ledger can answer.
func (s *Server) alsoArchived(routes []door.Route) []door.Route {
	if s.whole == nil {
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

// onCopy answers r, a request for rt, from a whole copy. Where that is not made in time, it is for those who
// ask again.
func (s *Server) onCopy(w http.ResponseWriter, r *http.Request, rt door.Route) error {
	wait := wholeWait
	if rt.Page {
		wait = s.Times.Archive
	}
	waiting, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	begun := false
	err := s.whole.Use(waiting, func(store *ledger.Store) error {
		begun = true
		return s.handleOn(store, rt.Pattern)(w, r.WithContext(door.Reading(r.Context())))
	})
	switch {
	case begun || !errors.Is(err, context.DeadlineExceeded):
		return err
	case rt.Page:
		w.Header().Set("Refresh", "2")
		return errReadingPage
	}
	return errReading
}

// handleOn returns what answers requests for a pattern from store, a whole copy.
func (s *Server) handleOn(store *ledger.Store, pattern string) handle {
	s.copied.mu.Lock()
	defer s.copied.mu.Unlock()
	if s.copied.store != store {
		config := s.api.Config
		config.Store, config.Copy, config.Archive = store, true, ""
		config.Moments, config.Figures = new(view.Moments), new(view.Now)
		pages := &page.Pages{Acts: s.pages.Acts, Ledgers: s.pages.Ledgers, Name: s.pages.Name}
		pages.API = api.New(config)
		s.copied.store, s.copied.handles = store, make(map[string]handle)
		for _, rt := range readers(pages) {
			s.copied.handles[rt.Pattern] = rt.Handle
		}
	}
	return s.copied.handles[pattern]
}

// readers are the routes with which a ledger is looked at.
func readers(pages *page.Pages) []door.Route {
	return append(append(pages.API.Routes(), send.New(pages.API).Routes()...), pages.Routes()...)
}
