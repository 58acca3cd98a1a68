package page

import (
	"net/http"
	"net/url"
	"time"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection/attempts"
	"jobledger/projection/query"
)

type attempt = attempts.Attempt

// spanView is what pages about a window share.
type spanView struct {
	frame
	Filter    url.Values
	From, To  string   // as the form and scripts have them
	Window    string   // for people
	Zoom      []link   // other windows
	Until     string   // the moment of the page, as scripts have it
	RowGroups []string // by which rows can be grouped; none: there are no rows
	RowGroup  string   // by which they are
}

// link is a link with its text.
type link struct{ Text, Href string }

// readSpan reads the window that a page is about, its frame, and by read what it shows, all of one snapshot.
func (p *Pages) readSpan(r *http.Request, title string, f *frame, read func(*ledger.Tx, query.Lanes) error) (
	query url.Values, s query.Lanes, err error) {
	if query, err = api.QueryOf(r); err != nil {
		return nil, s, err
	}
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		if _, err := p.begin(f, r, query, tx, title); err != nil {
			return err
		}
		if s, err = p.Span(r.Context(), tx, query); err != nil {
			return err
		}
		return read(tx, s)
	})
	return query, s, err
}

// set sets the window, and the links to others.
func (v *spanView) set(p *Pages, query url.Values, s query.Lanes) {
	v.Filter = query
	v.From, v.To, v.Until = stamp(s.From.At), stamp(s.To.At), stamp(v.clock)
	v.Window = windowText(s, p.Now().Location())
	from, length := s.From.At, s.To.At.Sub(s.From.At)
	for _, z := range []struct {
		text     string
		from, to float64 // as shares of the window
	}{{"Zoom in", .25, .75}, {"Zoom out", -.5, 1.5}, {"Earlier", -.5, .5}, {"Later", .5, 1.5}} {
		at := func(share float64) time.Time { return from.Add(time.Duration(share * float64(length))) }
		begin, end := at(z.from), at(z.to)
		if end.After(v.clock) {
			end = v.clock
		}
		if end.Sub(begin) >= time.Second {
			q := api.Cloned(query)
			q.Set("from", stamp(begin))
			q.Set("to", stamp(end))
			v.Zoom = append(v.Zoom, link{z.text, v.Path + "?" + q.Encode()})
		}
	}
	v.Zoom = append(v.Zoom, link{"Last 6 hours", v.Path + v.atQuery()})
}

// stamp is t in an address.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

// windowText is s for people, in zone.
func windowText(s query.Lanes, zone *time.Location) string {
	from, to := s.From.At.In(zone), s.To.At.In(zone)
	end := to.Format("15:04:05 MST")
	if from.Format(time.DateOnly) != to.Format(time.DateOnly) {
		end = to.Format("2006-01-02 15:04:05 MST")
	}
	begin := from.Format("2006-01-02 15:04:05")
	if from.Format("MST") != to.Format("MST") {
		begin = from.Format("2006-01-02 15:04:05 MST")
	}
	return begin + " to " + end + ", " + words.Briefly(to.Sub(from))
}
