package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// apiRoot begins the path of every resource.
const apiRoot = "/api/v1"

// Bounds of the parameter limit.
const (
	defaultLimit = 100
	maxLimit     = 1000
	maxParams    = 64
)

// resource is an answer of the API: that of a verb, whose flags are the parameters.
type resource struct {
	path   string // below apiRoot
	verb   string
	params []string // flags of the verb that may be given; "at" stands for --as-of
	form   form
}

// form is how a resource is answered.
type form int

const (
	list   form = iota // all lines that the verb prints
	one                // the first of them
	jobs               // pages of jobs, the newest first
	events             // pages of events, the oldest first
)

var resources = []resource{
	{"/status", "status", []string{"at"}, list},
	{"/queues", "queues", []string{"at", "paused"}, list},
	{"/workers", "workers", []string{"at", "all"}, list},
	{"/jobs", "list", []string{"at", "queue", "state", "tag", "key", "group", "from", "to", "by", "error",
		"exit",
		"host", "limit"}, jobs},
	{"/jobs/{job}", "show", []string{"at"}, one},
	{"/jobs/{job}/events", "history", nil, list},
	{"/jobs/{job}/why", "why", []string{"at"}, one},
	{"/events", "events", []string{"job", "kind", "worker", "queue", "actor", "from", "to", "after", "last",
		"limit"}, events},
}

// switches are the parameters whose value is true or false.
var switches = []string{"paused", "all"}

func (s *Server) apiRoutes() (routes []route) {
	for _, res := range resources {
		routes = append(routes, route{pattern: "GET " + apiRoot + res.path,
			handle: func(w http.ResponseWriter, r *http.Request) error { return s.answer(w, r, res) }})
	}
	return routes
}

// found is what a verb printed for a resource.
type found struct {
	lines [][]byte
	next  string // the address of the next page; "": there is none
	pos   int64  // the lines have everything up to this position at least: events after it follow without a gap
}

// find runs the verb of res with query, and returns the lines of one page.
func (s *Server) find(r *http.Request, res resource, query url.Values) (f found, err error) {
	words, limit, err := res.words(query, r.PathValue("job"))
	if err != nil {
		return f, err
	}
	if f.pos, err = s.tail(r.Context()); err != nil {
		return f, err
	}
	out := &answerBuffer{first: res.form == one}
	err = s.Ask(r.Context(), out, words)
	switch {
	case errors.Is(err, errEnough):
	case err != nil && s.nothing(err) && res.form != one:
		out.Reset()
	case err != nil:
		return f, err
	}
	err = nil
	f.lines = bytes.SplitAfter(out.Bytes(), []byte("\n"))
	f.lines = f.lines[:len(f.lines)-1] // what follows the last newline is empty
	if limit > 0 && len(f.lines) > limit {
		f.next, err = s.next(r, res, query, f.lines[limit-1], f.lines[limit])
		f.lines = f.lines[:limit]
	}
	return f, err
}

// answer sends what the verb of res prints.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, res resource) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errQuery
	}
	f, err := s.find(r, res, query)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Jobledger-Pos", strconv.FormatInt(f.pos, 10))
	h.Set("Cache-Control", "private, no-cache") // it may be kept, and is asked for again by its tag
	if f.next != "" {
		h.Set("Link", "<"+f.next+`>; rel="next"`)
	}
	switch {
	case res.form == one:
		h.Set("Content-Type", "application/json")
		return send(w, bytes.Join(f.lines[:min(1, len(f.lines))], nil))
	case r.Header.Get("Accept") == "application/x-ndjson":
		h.Set("Content-Type", "application/x-ndjson")
		return send(w, bytes.Join(f.lines, nil))
	}
	return sendItems(w, f.lines, f.next)
}

var errQuery = refusal(http.StatusBadRequest, "usage", "the query of the address cannot be read")

// nothing reports whether err means that there is nothing, which is no error of a list.
func (s *Server) nothing(err error) bool { return s.problemOf(err).Code == "nothing" }

// words returns the command line for query, with one more than the page's limit asked for, and that limit; 0
// for an answer without pages.
func (res resource) words(query url.Values, job string) (words []string, limit int, err error) {
	bad := func(format string, args ...any) error {
		return refusal(http.StatusBadRequest, "usage", fmt.Sprintf(format, args...))
	}
	words = []string{res.verb, "--json"}
	params := 0
	for _, name := range sortedNames(query) {
		values := query[name]
		params += len(values)
		switch {
		case !slices.Contains(res.params, name):
			return nil, 0, bad("there is no parameter %.40q here; there are: %s", name,
				strings.Join(res.params, ", "))
		case params > maxParams:
			return nil, 0, bad("more than %d parameters", maxParams)
		case name == "limit":
			continue
		}
		for _, value := range values {
			switch {
			case slices.Contains(switches, name) && value != "true" && value != "false":
				return nil, 0, bad("%s is true or false", name)
			case name == "at":
				words = append(words, "--as-of="+value)
			case name == "last" && !inRange(value):
				return nil, 0, bad("last is a number from 1 to %d", maxLimit)
			default:
				words = append(words, "--"+name+"="+value)
			}
		}
	}
	if res.form == jobs || res.form == events && !query.Has("last") {
		limit = defaultLimit
		if values := query["limit"]; len(values) > 0 {
			if len(values) > 1 || !inRange(values[0]) {
				return nil, 0, bad("limit is a number from 1 to %d", maxLimit)
			}
			limit, _ = strconv.Atoi(values[0])
		}
		words = append(words, "--limit="+strconv.Itoa(limit+1))
	} else if query.Has("limit") {
		return nil, 0, bad("last and limit exclude each other")
	}
	if strings.Contains(res.path, "{job}") {
		if !isJobID(job) {
			return nil, 0, bad("%.40q is not the id of a job", job)
		}
		words = append(words, "--", job)
	}
	return words, limit, nil
}

func sortedNames(query url.Values) []string { return slices.Sorted(maps.Keys(query)) }

// inRange reports whether text is a number that limit and last may have.
func inRange(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 1 && n <= maxLimit && strconv.Itoa(n) == text
}

// isJobID reports whether text may be the id of a job, or its beginning.
func isJobID(text string) bool {
	return text != "" && len(text) <= ulid.EncodedSize &&
		strings.Trim(strings.ToUpper(text), ulid.Encoding) == ""
}

// next is the address of the page after the one that ends with last and is followed by more; "" where no
// parameter can name it, which is so for jobs by the time at which they finished.
func (s *Server) next(r *http.Request, res resource, query url.Values, last, more []byte) (string, error) {
	var line struct {
		Pos int64       `json:"pos"`
		ID  event.JobID `json:"id"`
	}
	query = url.Values(http.Header(query).Clone())
	switch res.form {
	case events:
		if err := json.Unmarshal(last, &line); err != nil {
			return "", fmt.Errorf("read an event: %w", err)
		}
		query.Set("after", strconv.FormatInt(line.Pos, 10))
	default:
		if err := json.Unmarshal(more, &line); err != nil {
			return "", fmt.Errorf("read a job: %w", err)
		}
		if ok, err := s.continueAt(r.Context(), query, string(line.ID)); err != nil || !ok {
			return "", err
		}
	}
	return r.URL.Path + "?" + query.Encode(), nil
}

// continueAt changes the query of a page of jobs so that it begins with the job id; ok is false where no
// parameter can name it.
func (s *Server) continueAt(ctx context.Context, query url.Values, id string) (ok bool, err error) {
	if query.Get("by") == "finished" {
		return false, nil
	}
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
		n, err := jobref.Ref{ID: id}.Number(ctx, tx)
		query.Set("to", fmt.Sprintf("pos:%d", n))
		return err
	})
	return true, err
}

// tail is the position of the last event.
func (s *Server) tail(ctx context.Context) (pos int64, err error) {
	err = s.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		pos, err = tx.Tail(ctx)
		return err
	})
	return pos, err
}

// sendItems sends lines of JSON as an object with items, and the address of the next page or null.
func sendItems(w http.ResponseWriter, lines [][]byte, next string) error {
	var body bytes.Buffer
	body.WriteString(`{"items":[`)
	for i, line := range lines {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteByte('\n')
		body.Write(bytes.TrimSuffix(line, []byte("\n")))
	}
	address := []byte("null")
	if next != "" {
		var err error
		if address, err = json.Marshal(next); err != nil {
			return err
		}
	}
	body.WriteString("],\n\"next\":")
	body.Write(address)
	body.WriteString("}\n")
	w.Header().Set("Content-Type", "application/json")
	return send(w, body.Bytes())
}

func send(w http.ResponseWriter, body []byte) error {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := w.Write(body); err != nil {
		return errors.Join(context.Canceled, err) // the client has gone
	}
	return nil
}

// errEnough ends a verb whose first line is all that is wanted.
var errEnough = errors.New("web: the first line is there")

// answerBuffer holds what a verb prints, up to maxAnswer bytes.
type answerBuffer struct {
	bytes.Buffer
	first bool // only the first line is wanted
}

func (b *answerBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxAnswer {
		return 0, errTooLarge
	}
	n, _ := b.Buffer.Write(p)
	if b.first && bytes.IndexByte(p, '\n') >= 0 {
		return n, errEnough
	}
	return n, nil
}
