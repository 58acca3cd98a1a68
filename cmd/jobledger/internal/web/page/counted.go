package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/paging"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/web/api"
)

// lineCounter counts the lines that are written to it.
type lineCounter struct{ lines int64 }

func (c *lineCounter) Write(text []byte) (int, error) {
	c.lines += int64(bytes.Count(text, []byte("\n")))
	return len(text), nil
}

// counted says how many jobs the filter of query selects, of which the page shows the first shown: within the
// time of a search, exactly as of a position, or more than so many of the newest.
func (p *Pages) counted(r *http.Request, query url.Values, shown int) (string, error) {
	q := api.Cloned(query)
	q.Del("limit")
	words, _, err := api.ResourceAt("/jobs").Words(q, "")
	if err != nil {
		return "", err
	}
	words = slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, "--limit=") })
	words = append(words, "--limit="+strconv.Itoa(math.MaxInt32))
	before, err := p.Tail(r.Context())
	if err != nil {
		return "", err
	}
	var count lineCounter
	err = p.Ask(r.Context(), &count, append(words, p.SearchWords(query)...))
	ended, isEnded := errors.AsType[*paging.Ended](err)
	switch {
	case isEnded:
		return fmt.Sprintf("More than %s match, of %s.", render.Count(max(count.lines, int64(shown)), "job"),
			render.Newest(ended.Looked, ended.Jobs)), nil
	case errors.Is(err, context.DeadlineExceeded):
		return "More than " + render.Count(int64(shown), "job") + ".", nil
	case err != nil && !p.Nothing(err):
		return "", err
	}
	after, err := p.Tail(r.Context())
	return render.Count(count.lines, "job") + exactAt(before, after), err
}

// exactAt says as of which position a number is exact; something may have happened while it was counted.
func exactAt(before, after int64) string {
	if before == after {
		return fmt.Sprintf(" as of pos %d (exact).", after)
	}
	return fmt.Sprintf(" between pos %d and %d.", before, after)
}
