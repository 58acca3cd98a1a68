package page

import (
	"net/http"
	"net/url"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
	"jobledger/projection/attempts"
)

type attempt = attempts.Attempt

// readSpan reads the window that a page is about, its frame, and by read what it shows, all of one snapshot.
func (p *Pages) readSpan(r *http.Request, title string, f *frame, read func(*ledger.Tx, view.Span) error) (
	query url.Values, s view.Span, err error) {
	if query, err = api.QueryOf(r); err != nil {
		return nil, s, err
	}
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := p.momentOf(r, query, tx)
		if err != nil {
			return err
		}
		if *f, err = p.frameAt(r, query, tx, m, title); err != nil {
			return err
		}
		if s, err = p.Span(r.Context(), tx, query); err != nil {
			return err
		}
		return read(tx, s)
	})
	return query, s, err
}
