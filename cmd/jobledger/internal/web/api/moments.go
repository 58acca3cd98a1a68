package api

import (
	"net/http"

	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
)

// MomentColumns is how many columns the marks of the bar of moments have, unless px says otherwise.
const MomentColumns = 250

// MomentParams are the parameters of the marks of the bar of moments.
var MomentParams = []string{"at", "px"}

// momentsJSON are moments.
type momentsJSON struct {
	Items []view.Moment `json:"items"`
	Tail  int64         `json:"tail"` // the last position that counts
}

// moments sends where in the ledger something went wrong, up to the moment at.
func (a *API) moments(w http.ResponseWriter, r *http.Request) error {
	query, err := ReadParams(r, MomentParams)
	if err != nil {
		return err
	}
	px, err := WholeParam(query, "px", MomentColumns, 1, maxColumns)
	if err != nil {
		return err
	}
	var tail, until int64
	err = a.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		if tail, err = tx.Tail(r.Context()); err != nil {
			return err
		}
		m, err := a.asked(r.Context(), tx, query)
		if err != nil {
			return err
		}
		until = m.Pos
		return a.Moments.Refresh(r.Context(), tx)
	})
	if err != nil {
		return err
	}
	found, _ := a.Moments.Columns(px, until)
	if found == nil {
		found = []view.Moment{}
	}
	return sendJSON(w, tail, momentsJSON{found, until})
}
