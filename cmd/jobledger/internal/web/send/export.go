package send

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger"
)

// ExportParams are the parameters of an export.
var ExportParams = []string{"from", "to", "format", "bodies"}

// export sends what the verb export writes, as it reads it: with bodies=true all of it, otherwise what it
// writes with --no-bodies.
func (a *Sender) export(w http.ResponseWriter, r *http.Request) error {
	params, err := api.ReadParams(r, ExportParams)
	if err != nil {
		return err
	}
	bodies, err := api.SwitchParam(params, "bodies")
	switch {
	case err != nil:
		return err
	case bodies && !api.MaySeeBodies(r.Context()):
		return door.ErrNoBodies
	}
	form := cmp.Or(params.Get("format"), "jsonl")
	if !slices.Contains(export.Formats, form) {
		return door.BadInput("format", "format is "+export.FormatWords)
	}
	kind, name := mediaOf(form)
	if err := door.Acceptable(r, strings.TrimSuffix(kind, "; charset=utf-8")); err != nil {
		return err
	}
	asked, err := find.Window(params, a.Now())
	if err != nil {
		return err
	}
	var window export.Window
	var tail int64
	err = a.Store.Read(r.Context(), func(tx *ledger.Tx) (err error) {
		if tail, err = tx.Tail(r.Context()); err == nil {
			window, err = export.Between(r.Context(), tx, asked.From, asked.To)
		}
		return err
	})
	options := export.LinesOptions{Bodies: bodies}
	if err != nil {
		return err
	}
	options.Withhold = api.ShownTo(r.Context())
	claims := export.ClaimsIn(form)
	d := a.newDownload(w, r, kind, name)
	d.headers.Set("Jobledger-Pos", strconv.FormatInt(tail, 10))
	return d.run(r, func(ctx context.Context, out io.Writer) error {
		if claims != nil {
			return claims(ctx, a.Store, window, out)
		}
		_, err := export.Lines(ctx, a.Store, window, options, out)
		return err
	})
}

// mediaOf is the media type of an export, and the name of its file.
func mediaOf(form string) (kind, name string) {
	switch form {
	case "csv":
		return "text/csv; charset=utf-8", "attempts.csv"
	case "trace":
		return "application/json", "trace.json"
	case "otlp":
		return "application/x-ndjson", "spans.jsonl"
	}
	return "application/x-ndjson", "export.jsonl"
}

// sendLines sends lines of JSON as write makes them. They have everything up to pos.
func (a *Sender) sendLines(w http.ResponseWriter, r *http.Request, pos int64,
	write func(ctx context.Context, out io.Writer) error) error {
	d := a.newDownload(w, r, "application/x-ndjson", "")
	d.headers.Del("Content-Disposition")
	d.headers.Set("Jobledger-Pos", strconv.FormatInt(pos, 10))
	return d.run(r, write)
}
