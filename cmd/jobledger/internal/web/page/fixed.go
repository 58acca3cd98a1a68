package page

import (
	"net/http"
	"strings"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/ledger"
	"jobledger/projection"
)

// fixed leads an address with a time as its moment, such as -1h, to the same page at the position of that
// moment, so that the address stays about it. The new address has the time too: where nothing happened
// between the event and that time, workers fell silent, and jobs waited longer. What cannot be read is left
// to handle, whose page says so.
func (p *Pages) fixed(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter,
	*http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		query, err := api.QueryOf(r)
		if err != nil || len(query["at"]) != 1 || strings.HasPrefix(query.Get("at"), "pos:") {
			return handle(w, r)
		}
		moment, err := when.ReadWhen("at", query.Get("at"), p.Now())
		if err != nil {
			return handle(w, r)
		}
		var m, last projection.Moment
		err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
			if m, err = moment.Moment(r.Context(), tx, "at", p.Now()); err == nil {
				last, err = projection.AtPos(r.Context(), tx, m.Pos)
			}
			return err
		})
		if err != nil {
			return handle(w, r)
		}
		if moment = (when.When{Pos: m.Pos, ByPos: true}); m.At.After(last.At) {
			moment.Time = m.At
		}
		query.Set("at", moment.String())
		p.Door.SeeOther(w, r, r.URL.EscapedPath()+"?"+query.Encode())
		return nil
	}
}

// shownAt is the value of the parameter at for a form: of a position with a time, the time.
func shownAt(at string) string {
	if _, clock, ok := strings.Cut(at, "@"); ok {
		return clock
	}
	return at
}
