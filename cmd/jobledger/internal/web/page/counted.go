package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/query"
)

// counted says how many jobs q selects, of which the page shows the first shown: within the time of a search,
// exactly as of a position, or more than so many of the newest.
func (p *Pages) counted(r *http.Request, q query.Jobs, params url.Values, shown int) (string, error) {
	before, err := p.Tail(r.Context())
	if err != nil {
		return "", err
	}
	reader := find.Reader{Store: p.Store, SearchTime: p.SearchTime(params)}
	for _, err = range reader.Jobs(r.Context(), q) {
		if err != nil {
			break
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "More than " + words.Count(int64(shown), "job") + ".", nil
	case err != nil:
		return "", err
	case reader.Ended != nil:
		return fmt.Sprintf("More than %s match, of %s.", words.Count(int64(max(reader.Taken, shown)), "job"),
			words.Newest(reader.Ended.Looked, reader.Ended.Jobs)), nil
	}
	after, err := p.Tail(r.Context())
	return words.Count(int64(reader.Taken), "job") + exactAt(before, after), err
}

// exactAt says as of which position a number is exact; something may have happened while it was counted.
func exactAt(before, after int64) string {
	if before == after {
		return fmt.Sprintf(" as of pos %d (exact).", after)
	}
	return fmt.Sprintf(" between pos %d and %d.", before, after)
}
