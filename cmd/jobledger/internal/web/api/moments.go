package api

import (
	"net/http"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
	"jobledger/projection"
)

// MomentColumns is how many columns the marks of the bar of moments have, unless px says otherwise.
const MomentColumns = 250

// MomentParams are the parameters of the marks of the bar of moments.
var MomentParams = []string{"at", "px", "from", "to", "rows"}

// momentsJSON are moments.
type momentsJSON struct {
	Items []view.Moment `json:"items"`
	Tail  int64         `json:"tail"` // the last position that counts
}

// moments sends where in the ledger something went wrong, up to the moment at: by position, or in two rows by
// time.
func (a *API) moments(w http.ResponseWriter, r *http.Request) error {
	query, err := ReadParams(r, MomentParams)
	if err != nil {
		return err
	}
	px, err := WholeParam(query, "px", MomentColumns, 1, maxColumns)
	if err != nil {
		return err
	}
	rows, err := WholeParam(query, "rows", 1, 1, 2)
	if err != nil {
		return err
	}
	if rows == 1 && (query.Has("from") || query.Has("to")) {
		return door.BadInput("rows", "from and to need rows=2: one row goes by position")
	}
	var tail, until int64
	var from, to projection.Moment
	err = a.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		if tail, err = tx.Tail(r.Context()); err != nil {
			return err
		}
		m, err := a.asked(r.Context(), tx, query)
		if err != nil {
			return err
		}
		until = m.Pos
		if err = a.Moments.Refresh(r.Context(), tx); err != nil || rows == 1 {
			return err
		}
		from.At = a.Moments.First()
		if to.At = a.Now(); query.Has("at") {
			to.At = m.At
		}
		if query.Has("to") {
			if to, err = a.Moment(r.Context(), tx, "to", query.Get("to")); err != nil {
				return err
			}
			until = min(until, to.Pos)
		}
		if query.Has("from") {
			from, err = a.Moment(r.Context(), tx, "from", query.Get("from"))
		}
		return err
	})
	if err != nil {
		return err
	}
	var found []view.Moment
	if rows == 1 {
		found, _ = a.Moments.Columns(px, until)
	} else {
		found = a.Moments.Strip(from.At, to.At, px, until)
	}
	if found == nil {
		found = []view.Moment{}
	}
	return sendJSON(w, tail, momentsJSON{found, until})
}
