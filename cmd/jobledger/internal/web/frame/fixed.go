package frame

import (
	"context"
	"net/http"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// fixed reads the times of an address as people say them, such as tue 02:00, in the zone of the page; handle
// has them with their zone. An address with a moment, such as at=-1h, is led to the same page at the position
// of that moment, so that the address stays about it. The new address has the time too: where nothing
// happened between the event and that time, workers fell silent, and jobs waited longer.
func (p *Site) fixed(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter,
	*http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		query, err := api.QueryOf(r)
		if err != nil {
			return err
		}
		now, changed := p.Now(), false
		for _, name := range []string{"from", "to", "at"} {
			text := query.Get(name)
			if len(query[name]) != 1 || strings.HasPrefix(text, "pos:") { // handle says what is wrong with these
				continue
			}
			heard, err := when.ReadSpoken(name, text, now)
			if err == nil && heard.As != "" {
				if now, err = p.recordedEnd(r.Context(), now); err == nil {
					heard, err = when.ReadSpoken(name, text, now)
				}
			}
			if err != nil {
				return err
			}
			if heard.As != "" {
				query.Set(name, heard.Exact())
				changed = true
			}
			if name != "at" {
				continue
			}
			var m, last projection.Moment
			err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
				if m, err = heard.Moment(r.Context(), tx, "at", p.Now()); err == nil {
					last, err = projection.AtPos(r.Context(), tx, m.Pos)
				}
				return err
			})
			if err != nil {
				return err
			}
			if heard.When = (when.When{Pos: m.Pos, ByPos: true}); m.At.After(last.At) {
				heard.Time = m.At
			}
			query.Set("at", heard.String())
			if p.tz != "" {
				query.Set(zoneParam, p.tz)
			}
			p.Door.SeeOther(w, r, r.URL.EscapedPath()+"?"+query.Encode())
			return nil
		}
		if changed {
			address := *r.URL
			address.RawQuery = query.Encode()
			r = r.WithContext(r.Context())
			r.URL = &address
		}
		return handle(w, r)
	}
}

// recordedEnd is the end of what was recorded, in the zone of now, where the ledger is a copy or an import to
// which nothing was written since: the last 15:04 is one of that. Of every other ledger it is now.
func (p *Site) recordedEnd(ctx context.Context, now time.Time) (end time.Time, err error) {
	err = p.Store.Read(ctx, func(tx *ledger.Tx) error {
		end = now
		if made, ok, err := status.CopyOf(ctx, tx); err != nil || ok {
			end = made.At.In(now.Location())
			return err
		}
		tail, err := tx.Tail(ctx)
		if err != nil || tail < 2 {
			return err
		}
		if imported, err := tx.LastOf(ctx, event.KindImported); err != nil || imported < tail {
			return err
		}
		last, err := projection.AtPos(ctx, tx, tail-1)
		end = last.At.In(now.Location())
		return err
	})
	return end, err
}

// Local converts a time in an address, alone or with a position, for a field of the page: to the zone of the
// page.
func (f Frame) Local(text string) string {
	if _, clock, ok := strings.Cut(text, "@"); ok {
		text = clock
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return when.Heard{When: when.When{Time: t.In(f.Clock.Location())}}.Exact()
}

// clocksView says what is odd about the clocks at the moment of a page.
type clocksView struct {
	Text        string
	Other, Href string // the moment at which they show the same; "": there is none
}

// clocksAt says whether clocks show t, in its zone, twice, or skip what is before it; nil: neither.
func (f Frame) clocksAt(t time.Time, address func(at string) string) *clocksView {
	begin, _ := t.ZoneBounds()
	first, second, twice := when.Twice(t)
	other := when.Heard{When: when.When{Time: second}}
	switch {
	case twice && t.Equal(first):
		return &clocksView{"The clocks showed this time twice. This is the first, and there is ", "the second",
			address(other.Exact())}
	case twice:
		other.Time = first
		return &clocksView{"The clocks showed this time twice. This is the second, and there is ", "the first",
			address(other.Exact())}
	case !begin.IsZero() && t.Equal(begin):
		before := begin.Add(-time.Second)
		return &clocksView{Text: "The clocks went from " + before.Format("15:04:05 MST") + " to " +
			begin.Format("15:04:05 MST") + "."}
	}
	return nil
}
