package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/ledger"
	"jobledger/projection/query"
)

// Lists without pages: their lines are sent as they are read.
const (
	wholeSearch = "--search-time=24h" // a search looks in windows, so that no snapshot is long
	attemptPage = 1000                // claims of one snapshot
)

// wholeList reports whether r asks for all of a list, as lines, and not for one page of it.
func wholeList(r *http.Request) bool {
	query := r.URL.Query()
	return wantsLines(r) && !query.Has("limit") && !query.Has("last")
}

// streamsIf says which requests for res are answered with all of a list; nil: none.
func (res Resource) streamsIf() func(*http.Request) bool {
	if res.form == jobs || res.form == events || res.verb == "history" {
		return wholeList
	}
	return nil
}

// sendWhole sends all lines that the verb of res prints.
func (a *API) sendWhole(w http.ResponseWriter, r *http.Request, res Resource, query url.Values) error {
	query = a.pinned(query)
	words, _, err := res.words(query, r.PathValue("job"), true)
	if err == nil && res.ofQueues() {
		err = a.Within(r, query)
	}
	if err != nil {
		return err
	}
	if res.form == jobs && a.SearchWords(query) != nil {
		words = append(words, wholeSearch)
	}
	pos, err := a.Tail(r.Context())
	if err != nil {
		return err
	}
	absent, err := a.absent(r.Context(), res, query)
	if err != nil {
		return err
	}
	setAbsent(w.Header(), absent)
	return a.SendLines(w, r, pos, func(ctx context.Context, out io.Writer) error {
		err := a.Ask(ctx, &lineWriter{ctx: ctx, res: res, out: out}, words)
		if err != nil && a.Nothing(err) {
			return nil
		}
		return err
	})
}

// lineWriter passes on whole lines, without what the caller of ctx may not see.
type lineWriter struct {
	ctx  context.Context
	res  Resource
	out  io.Writer
	rest []byte // the beginning of a line
}

func (l *lineWriter) Write(part []byte) (int, error) {
	l.rest = append(l.rest, part...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 {
		return len(part), nil
	}
	whole := l.rest[:end]
	if !MaySeeBodies(l.ctx) {
		var short []byte
		for line := range bytes.Lines(whole) {
			line, err := l.res.withhold(l.ctx, line)
			if err != nil {
				return 0, err
			}
			short = append(short, line...)
		}
		whole = short
	}
	if _, err := l.out.Write(whole); err != nil {
		return 0, err
	}
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return len(part), nil
}

// sendAttempts sends all claims that query selects, of the job in the path if there is one.
func (a *API) sendAttempts(w http.ResponseWriter, r *http.Request, query url.Values, job string) error {
	pos, err := a.Tail(r.Context())
	if err != nil {
		return err
	}
	return a.SendLines(w, r, pos, func(ctx context.Context, out io.Writer) error {
		return a.writeAttempts(ctx, query, job, out)
	})
}

// writeAttempts writes the claims that query selects, page by page.
func (a *API) writeAttempts(ctx context.Context, params url.Values, job string, out io.Writer) error {
	var q query.Attempts
	for first := true; ; first = false {
		var found []query.Attempt
		err := a.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
			if first {
				if q, err = a.attemptsQuery(ctx, tx, params, job); err != nil {
					return err
				}
				q.Limit = attemptPage
			}
			found, err = q.Read(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
		var text bytes.Buffer
		lines := json.NewEncoder(&text)
		lines.SetEscapeHTML(false)
		for _, one := range found {
			if err := lines.Encode(layout.NewAttemptJSON(one)); err != nil {
				return err
			}
		}
		if text.Len() > 0 {
			if _, err := out.Write(text.Bytes()); err != nil {
				return err
			}
		}
		if len(found) < attemptPage {
			return nil
		}
		q.After = found[len(found)-1].Pos
	}
}
