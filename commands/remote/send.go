package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"time"

	"jobledger/commands/remote/wire"
	"jobledger/ledger"
)

const (
	maxAnswer    = 256 << 20 // bytes
	firstBackoff = 20 * time.Millisecond
	maxBackoff   = time.Second
	attemptTime  = 30 * time.Second // to wait for the answer of one attempt, without what it asks to wait
)

// request is one request, which may be sent several times.
type request struct {
	method, path string
	body         any           // as JSON; []byte: as it is
	kind         string        // the media type of a body of bytes
	wait         time.Duration // how long the server may wait before it answers
	patience     time.Duration // how long to send it again; 0: that of the client
}

// send sends r until there is an answer, and reads that into out; nil: it is dropped. found is false where
// the answer has no content. An error without an answer is [ledger.ErrUnknown]: it may have been carried out.
func (c *Client) send(ctx context.Context, r request, out any) (found bool, err error) {
	body, kind := []byte(nil), r.kind
	switch b := r.body.(type) {
	case nil:
	case []byte:
		body = b
	default:
		kind = "application/json"
		if body, err = json.Marshal(b); err != nil {
			return false, err
		}
	}
	patience := r.patience
	patience = cmp.Or(patience, c.patience)
	began, reread := time.Now(), false
	for try := 0; ; try++ {
		found, err = c.attempt(ctx, r, body, kind, out)
		problem, answered := errors.AsType[*wire.Problem](err)
		switch {
		case err == nil:
			return found, nil
		case answered && problem.Status == http.StatusUnauthorized && c.file != "" && !reread:
			reread = true // the token was replaced, as before it expires
			if c.readToken() == nil {
				continue
			}
			return false, err
		case answered && problem.Status == http.StatusUnauthorized && c.certified && !reread:
			reread = true // as after the certificate expired: the next connection reads it again
			c.http.CloseIdleConnections()
			continue
		case answered && problem.Field == "cannot_end":
			claims, some := r.body.(wire.Claims)
			if !some || !claims.Plain() {
				return false, err
			}
			if body, err = json.Marshal(claims); err != nil { // the server is of a release that does not know it
				return false, err
			}
			continue
		case answered && !problem.Temporary():
			return false, err
		case ctx.Err() != nil:
			return false, fmt.Errorf("%w: %w", ledger.ErrUnknown, context.Cause(ctx))
		}
		pause := min(firstBackoff<<min(try, 10), maxBackoff)
		pause += rand.N(pause) // #nosec G404 -- no secret
		if time.Since(began)+pause > patience {
			if answered {
				return false, err
			}
			return false, fmt.Errorf("%w: %s cannot be reached: %w", ledger.ErrUnknown, c.base, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, r request, body []byte, kind string, out any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime+r.wait)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, r.method, c.base+wire.Root+r.path, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	if body != nil {
		q.Header.Set("Content-Type", kind)
		q.Header.Set("Prefer", wire.PreferMinimal)
	}
	if token := c.bearer(); token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.http.Do(q) // #nosec G704 -- the address is the user's own
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	text, err := read(answer)
	switch {
	case err != nil:
		return false, err
	case len(text) > maxAnswer:
		return false, fmt.Errorf("%s %s: the answer is larger than 256 MiB", r.method, r.path)
	case answer.StatusCode == http.StatusNoContent:
		return false, nil
	case answer.StatusCode >= 300:
		return false, problemOf(answer, text)
	case out == nil:
		return true, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return false, fmt.Errorf("%s %s: the answer cannot be read: %w", r.method, r.path, err)
	}
	return true, nil
}

// read reads the whole answer.
func read(answer *http.Response) ([]byte, error) {
	if n := answer.ContentLength; n >= 0 && n <= maxAnswer {
		text := make([]byte, n)
		_, err := io.ReadFull(answer.Body, text)
		return text, err
	}
	return io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
}

// problemOf is an answer that is an error. One that is not the server's own, such as a proxy's, has its
// status only.
func problemOf(answer *http.Response, text []byte) error {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	p := new(wire.Problem)
	if kind != "application/problem+json" || json.Unmarshal(text, p) != nil || p.Detail == "" {
		p = &wire.Problem{Code: "http", Detail: "the server answered " + strconv.Itoa(answer.StatusCode) + " " +
			http.StatusText(answer.StatusCode)}
	}
	p.Status = answer.StatusCode
	return p
}
