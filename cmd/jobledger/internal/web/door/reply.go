package door

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// leastGzip is the size, in bytes, from which an answer is compressed.
const leastGzip = 1 << 10

// reply holds an answer until it is whole, so that it can be compressed, and left out where the client has
// it.
type reply struct {
	http.ResponseWriter
	status int // 0: none was set
	body   bytes.Buffer
}

func (a *reply) WriteHeader(status int) {
	a.status = cmp.Or(a.status, status)
}

func (a *reply) Write(p []byte) (int, error) { return a.body.Write(p) }

// finish sends the answer to r. An answer that is not an error has a tag: the one that it was given, or a
// digest of its content. A client that names this tag gets 304 instead of the content.
func (a *reply) finish(r *http.Request) {
	w, h, body := a.ResponseWriter, a.Header(), a.body.Bytes()
	status := max(a.status, http.StatusOK)
	if a.status == 0 {
		asLines(r, h)
	}
	long := len(body) >= leastGzip && h.Get("Content-Type") != "application/zip"
	zipped := long && TakesGzip(r)
	if long {
		h.Add("Vary", "Accept-Encoding")
	}
	if a.status == 0 {
		tag := h.Get("ETag")
		if tag == "" {
			sum := sha256.Sum256(body)
			tag = `W/"` + hex.EncodeToString(sum[:12]) + `"`
		} else if zipped && !strings.HasPrefix(tag, "W/") { // a strong tag is one of bytes
			tag = strings.TrimSuffix(tag, `"`) + gzipMark
		}
		h.Set("ETag", tag)
		if hasTag(r.Header.Get("If-None-Match"), tag) {
			h.Del("Content-Length")
			h.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if zipped {
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		_, err := z.Write(body)
		if err == nil && z.Close() == nil { // a buffer takes everything
			body = small.Bytes()
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// gzipMark ends a strong tag of an answer that is compressed.
const gzipMark = `-gzip"`

// hasTag reports whether the header If-None-Match names tag, compressed or not, by weak comparison.
func hasTag(header, tag string) bool {
	of := func(tag string) string {
		tag = strings.TrimPrefix(tag, "W/")
		if text, zipped := strings.CutSuffix(tag, gzipMark); zipped {
			return text + `"`
		}
		return tag
	}
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || of(one) == of(tag) {
			return true
		}
	}
	return false
}

// TakesGzip reports whether the client of r takes an answer that is compressed with gzip.
func TakesGzip(r *http.Request) bool { return acceptsGzip(r.Header.Get("Accept-Encoding")) }

// acceptsGzip reports whether the header Accept-Encoding names gzip, unless with the quality 0.
func acceptsGzip(header string) bool {
	for one := range strings.SplitSeq(header, ",") {
		name, quality, _ := strings.Cut(strings.ReplaceAll(one, " ", ""), ";")
		if !strings.EqualFold(name, "gzip") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(quality, "q="), 64)
		return quality == "" || err == nil && q > 0
	}
	return false
}

// Send answers with body. Its error means that the client has gone.
func Send(w http.ResponseWriter, body []byte) error {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := w.Write(body); err != nil {
		return errors.Join(context.Canceled, err)
	}
	return nil
}
