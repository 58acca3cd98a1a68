package frame

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

type Attempt = attempts.Attempt

// Span is what pages about a window share.
type Span struct {
	Frame
	Filter    url.Values
	From, To  string   // as the form and scripts have them
	Window    string   // for people
	Zoom      []Link   // other windows
	Until     string   // the moment of the page, as scripts have it
	RowGroups []string // by which rows can be grouped; none: there are no rows
	RowGroup  string   // by which they are
}

// Link is a link with its text.
type Link struct{ Text, Href string }

// ReadSpan reads the window that a page is about, its frame, and by read what it shows, all of one snapshot.
func (p *Site) ReadSpan(r *http.Request, title string, f *Frame, read func(*ledger.Tx, query.Lanes) error) (
	query url.Values, s query.Lanes, err error) {
	if query, err = api.QueryOf(r); err != nil {
		return nil, s, err
	}
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		if _, err := p.Begin(f, r, query, tx, title); err != nil {
			return err
		}
		if s, err = p.Span(r.Context(), tx, query); err != nil {
			return err
		}
		return read(tx, s)
	})
	return query, s, err
}

// SetWindow sets the window, and the links to others.
func (v *Span) SetWindow(p *Site, query url.Values, s query.Lanes) {
	v.Filter = query
	v.From, v.To, v.Until = Stamp(s.From.At), Stamp(s.To.At), Stamp(v.Clock)
	v.Window = windowText(s, p.Now().Location())
	from, length := s.From.At, s.To.At.Sub(s.From.At)
	for _, z := range []struct {
		text     string
		from, to float64 // as shares of the window
	}{{"Zoom in", .25, .75}, {"Zoom out", -.5, 1.5}, {"Earlier", -.5, .5}, {"Later", .5, 1.5}} {
		at := func(share float64) time.Time { return from.Add(time.Duration(share * float64(length))) }
		begin, end := at(z.from), at(z.to)
		if end.After(v.Clock) {
			end = v.Clock
		}
		if end.Sub(begin) >= time.Second {
			q := api.Cloned(query)
			q.Set("from", Stamp(begin))
			q.Set("to", Stamp(end))
			v.Zoom = append(v.Zoom, Link{z.text, v.Path + "?" + q.Encode()})
		}
	}
	v.Zoom = append(v.Zoom, Link{"Last 6 hours", v.Path + v.AtQuery()})
}

// Stamp is t in an address.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

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
