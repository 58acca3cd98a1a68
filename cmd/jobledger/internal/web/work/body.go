package work

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands/remote/wire"
)

// body reads the body of r to its end, which is how the server notices later that the client has gone.
func body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength > most {
		return nil, refusal(http.StatusRequestEntityTooLarge, "too_large", "the body is larger than allowed here")
	}
	if a, ok := w.(*arrival); ok && (r.ContentLength < 0 || r.ContentLength > largeBody) {
		if err := a.hold(r.Context(), door.CallerOf(r.Context()).Actor); err != nil {
			w.Header().Set("Retry-After", "1")
			return nil, err
		}
	}
	var kept bytes.Buffer
	kept.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := kept.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	text := kept.Bytes()
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, refusal(http.StatusRequestEntityTooLarge, "too_large", "the body is larger than allowed here")
	}
	if err != nil {
		return nil, refusal(http.StatusRequestTimeout, "slow", "the body did not arrive")
	}
	arrives(w)
	return text, nil
}

// kindOf returns the media type of the body, which must be one of those.
func kindOf(r *http.Request, of ...string) (string, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	for _, one := range of {
		if err == nil && kind == one {
			return kind, nil
		}
	}
	return "", refusal(http.StatusUnsupportedMediaType, "media_type", "the body must be "+of[0])
}

// read reads a body of JSON into v, of a request without parameters.
func read(w http.ResponseWriter, r *http.Request, most int64, v any) error {
	if _, err := query(r); err != nil {
		return err
	}
	if _, err := kindOf(r, "application/json"); err != nil {
		return err
	}
	text, err := body(w, r, most)
	if err != nil {
		return err
	}
	return wire.Read(text, v)
}

// query returns the parameters of r, and refuses all but these.
func query(r *http.Request, names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refusal(http.StatusBadRequest, "usage", "the query of the address cannot be read")
	}
	allowed := "there are no parameters"
	if len(names) > 0 {
		allowed = "the parameters are " + strings.Join(names, ", ") + ", and at most 64"
	}
	n := 0
	var wrong []wire.InputError
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if n += len(values[name]); !slices.Contains(names, name) || n > 64 {
			wrong = append(wrong, wire.InputError{Field: name, Detail: allowed})
		}
	}
	if len(wrong) > 0 {
		return nil, door.BadInputs(wrong[:min(len(wrong), 64)])
	}
	return values, nil
}

// isULID reports whether text is a ULID in capitals, which is its only form in addresses.
func isULID(text string) bool {
	id, err := ulid.ParseStrict(text)
	return err == nil && id.String() == text
}

// bodies counts the large bodies that are in memory, of each token and in all, so that many at once cannot
// take the memory from others.
type bodies struct {
	mu    sync.Mutex
	all   int
	of    map[string]int
	freed chan struct{} // closed when there may be room; nil: no request waits
}

// bodyWait is how long a request waits until its large body may be read.
const bodyWait = 10 * time.Second

// take waits until there is room for one of who.
func (b *bodies) take(ctx context.Context, who string) error {
	timer := time.NewTimer(bodyWait)
	defer timer.Stop()
	for {
		b.mu.Lock()
		if b.all < maxBodies && b.of[who] < maxBodiesGrant {
			if b.of == nil {
				b.of = make(map[string]int)
			}
			b.all++
			b.of[who]++
			b.mu.Unlock()
			return nil
		}
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return refusal(http.StatusServiceUnavailable, "busy", "too many large bodies at the same time")
		}
	}
}

func (b *bodies) give(who string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all--
	if b.of[who]--; b.of[who] == 0 {
		delete(b.of, who)
	}
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}
