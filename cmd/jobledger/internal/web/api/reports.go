package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// ReportParams are the parameters of a report.
var ReportParams = []string{"from", "to", "queue", "worker", "job"}

// reportJSON is the answer of a report.
type reportJSON struct {
	Report  string           `json:"report"`
	Answers string           `json:"answers"` // the question that it answers
	Columns []string         `json:"columns"` // the members of each item, in order
	Items   []json.Marshaler `json:"items"`   // what is missing is null, durations are seconds
}

// readReport reads the report that r names, of the window s. A parameter that the report does not have is
// refused.
func (a *API) readReport(r *http.Request, tx *ledger.Tx, s query.Lanes) (any, error) {
	report, ok := print.ReportNamed(r.PathValue("report"))
	if !ok {
		return nil, door.Refusal(http.StatusNotFound, "not_found", "there is no such report; there are: "+
			strings.Join(print.ReportNames(), ", "))
	}
	given := r.URL.Query()
	for _, name := range ReportParams {
		if given.Has(name) && !report.Takes(name) {
			return nil, door.BadInput(name, "the report "+report.Name+" has no "+name)
		}
	}
	asked := print.Asked{Span: s.Span, Now: a.Now()}
	made, isCopy, err := status.CopyOf(r.Context(), tx)
	if isCopy {
		asked.Now = made.At
	}
	if err == nil && given.Has("job") {
		asked.Job, err = numberOf(r.Context(), tx, given.Get("job"))
	}
	if err != nil {
		return nil, err
	}
	rows, err := report.Rows(r.Context(), tx, asked)
	out := reportJSON{report.Name, report.Answers, slices.Clone(report.Columns), []json.Marshaler{}}
	for _, row := range rows {
		out.Items = append(out.Items, report.RowJSON(row))
	}
	return out, err
}
