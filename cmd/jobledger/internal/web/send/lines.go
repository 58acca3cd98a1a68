package send

import (
	"context"
	"io"
	"net/http"
	"strconv"
)

// sendLines sends lines of JSON as write makes them. They have everything up to pos.
func (a *Sender) sendLines(w http.ResponseWriter, r *http.Request, pos int64,
	write func(ctx context.Context, out io.Writer) error) error {
	d := a.newDownload(w, r, "application/x-ndjson", "")
	d.headers.Del("Content-Disposition")
	d.headers.Set("Jobledger-Pos", strconv.FormatInt(pos, 10))
	return d.run(r, write)
}
