package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/buildinfo"
)

// Limits of what is read of an answer.
const (
	maxAnswer  = 512 // bytes of its body, for the one who looks why it failed
	maxHeaders = 16 << 10
	maxWait    = time.Hour // that Retry-After may ask for
)

// Answer is what came of a request.
type Answer struct {
	Status int           // 0: there was no answer
	Code   string        // why it failed, as an error code; "": it did not
	Detail string        // in a line
	Wait   time.Duration // that the receiver asks for; 0: it does not
	Took   time.Duration
}

// OK reports whether the receiver has taken it.
func (a Answer) OK() bool { return a.Code == "" }

// Gone reports whether the receiver wants no more.
func (a Answer) Gone() bool { return a.Status == http.StatusGone }

// sender sends to one endpoint.
type sender struct {
	endpoint Endpoint
	client   *http.Client
}

func newSender(e Endpoint) *sender {
	transport := &http.Transport{ // without a proxy, which would reach what this program may not
		DialContext:            dialer(e.Allow, strings.HasPrefix(e.URL, "https:")),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    MaxParallel,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: maxHeaders,
		DisableCompression:     true,
	}
	redirect := func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // another address was not asked for
	}
	return &sender{e, &http.Client{Transport: transport, CheckRedirect: redirect}}
}

func (s *sender) close() { s.client.CloseIdleConnections() }

// send makes one request, signed at this moment.
func (s *sender) send(ctx context.Context, id string, body []byte) (a Answer) {
	began := time.Now()
	defer func() { a.Took = time.Since(began) }()
	within, cancel := context.WithTimeout(ctx, s.endpoint.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(within, http.MethodPost, s.endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return Answer{Code: "bad_url", Detail: "the URL is not valid"}
	}
	r.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	r.Header.Set("User-Agent", "jobledger/"+buildinfo.Read().Version)
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", strconv.FormatInt(began.Unix(), 10))
	r.Header.Set("Webhook-Signature", s.endpoint.signatures(id, began, body))
	answer, err := s.client.Do(r)
	if err != nil {
		return failure(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	a.Status = answer.StatusCode
	switch {
	case err != nil && a.Status/100 == 2:
		return failure(err) // it ended before it was whole
	case a.Status/100 == 2:
		_, _ = io.CopyN(io.Discard, answer.Body, maxHeaders) // so that the connection can be used again
		return a
	}
	a.Code = fmt.Sprintf("http_%d", a.Status)
	a.Detail = strings.TrimSpace(answer.Status)
	if line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(text), "�")), "\n"); line != "" {
		a.Detail += ": " + line
	}
	if a.Status/100 == 3 {
		a.Detail = strings.TrimSpace(answer.Status) + ": redirects are not followed"
	}
	a.Wait = retryAfter(answer.Header.Get("Retry-After"), began)
	return a
}

// failure is what an error of the network means. It never has the URL, whose path may be a secret.
func failure(err error) Answer {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	a := Answer{Code: "no_answer", Detail: err.Error()}
	switch {
	case errors.Is(err, errAddress):
		a.Code = "address"
	case errors.As(err, &certificate):
		a.Code = "tls"
	case errors.As(err, &dns):
		a.Code = "no_host"
	case errors.Is(err, context.DeadlineExceeded):
		a.Code, a.Detail = "timeout", "there was no answer in time"
	}
	return a
}

// retryAfter is how long the header says to wait: seconds, or until a time.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return min(time.Duration(max(0, min(seconds, 1<<20)))*time.Second, maxWait)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(0, at.Sub(now)), maxWait)
}

// Test sends a request about no event to e, and returns its id.
func Test(ctx context.Context, source string, e Endpoint, now time.Time) (id string, a Answer, err error) {
	id = "test-" + ulid.Make().String()
	body, err := testMessage(source, id, now)
	if err != nil {
		return id, a, err
	}
	s := newSender(e)
	defer s.close()
	return id, s.send(ctx, id, body), nil
}
