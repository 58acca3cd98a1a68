package page

import (
	"net/http"
	"net/url"

	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/web/history"
	"jobledger/cmd/jobledger/internal/web/sqltext"
	"jobledger/ledger"
	"jobledger/projection/status"
)

// diffView is what the page of a comparison shows.
type diffView struct {
	spanView
	Matrix *render.Table // nil: nothing happened to any job
	Lines  []string
	Title2 string
	Events string
	Swap   string
}

// diffPage shows what changed between two moments.
func (p *Pages) diffPage(w http.ResponseWriter, r *http.Request) error {
	shown := diffView{}
	query, span, err := p.readSpan(r, "Diff", &shown.frame, func(tx *ledger.Tx, s history.Span) error {
		d, err := status.Compare(r.Context(), tx, s.From, s.To, 5)
		if err != nil {
			return err
		}
		if len(d.Cells) > 0 {
			shown.Matrix = layout.DiffMatrix(d.Cells)
		}
		shown.Lines = layout.DiffLines(d, p.Now().Location())
		shown.Title2 = layout.DiffTitle(s.From, s.To, p.Now().Location())
		return nil
	})
	if err != nil {
		return err
	}
	shown.set(p, query, span)
	between := url.Values{"from": {shown.From}, "to": {shown.To}}
	shown.Events = "/events?" + between.Encode()
	shown.Command = commandOf([]string{"diff", "--from=" + shown.From, "--to=" + shown.To})
	shown.API = "/api/v1/diff?" + between.Encode()
	shown.SQL = sqltext.Window("kind, count(*)", span.From.Pos, span.To.Pos, "GROUP BY kind")
	return p.render(w, "diff", shown)
}
