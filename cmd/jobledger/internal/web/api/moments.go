package api

import (
	"net/http"

	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
)

// MomentColumns is how many columns the marks of the bar of moments have, unless px says otherwise.
const MomentColumns = 250

// moments sends where in the ledger something went wrong.
func (a *API) moments(w http.ResponseWriter, r *http.Request) error {
	query, err := ReadParams(r, []string{"px"})
	if err != nil {
		return err
	}
	px, err := WholeParam(query, "px", MomentColumns, 1, maxColumns)
	if err != nil {
		return err
	}
	var tail int64
	err = a.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		if tail, err = tx.Tail(r.Context()); err != nil {
			return err
		}
		return a.Moments.Refresh(r.Context(), tx)
	})
	if err != nil {
		return err
	}
	found, _ := a.Moments.Columns(px, tail)
	if found == nil {
		found = []view.Moment{}
	}
	return sendJSON(w, tail, map[string]any{"items": found, "tail": tail})
}
