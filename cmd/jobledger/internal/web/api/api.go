package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/cmd/jobledger/internal/paging"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
)

// API answers programs. It is safe for concurrent use.
type API struct {
	Config
	metrics     cache
	streams     door.Shares
	totals      view.Totals
	books       view.Kept[view.Books]
	examined    view.Kept[[]doctor.Finding]
	Waiting     func() int    // how many claims wait; nil: none
	StreamWrite time.Duration // how long the client of a stream may read nothing

	// SendLines sends lines of JSON as write makes them, which have everything up to pos. Package send sets it.
	SendLines func(w http.ResponseWriter, r *http.Request, pos int64,
		write func(ctx context.Context, out io.Writer) error) error
}

// Config says what an [API] answers about.
type Config struct {
	Store    *ledger.Store
	Door     *door.Door
	Follower *view.Follower
	Moments  *view.Moments
	Verifier *view.Verifier
	Figures  *view.Now
	Now      func() time.Time
	Search   time.Duration // how long a search for jobs takes at most, about; 0: [SearchTime]
	Archive  string        // the folder of the archive; "": it is not known
	Copy     bool          // Store is a copy, without payloads and results
	Examine  func(context.Context) ([]doctor.Finding, error)
	Report   func(format string, args ...any) // logs a fault of the server, in one line
}

// New returns an API.
func New(c Config) *API {
	return &API{Config: c, StreamWrite: defaultStreamWrite, streams: door.Shares{Most: maxStreamsGrant}}
}

// Routes are those of the API and of the metrics.
func (a *API) Routes() []door.Route {
	return append([]door.Route{
		{Pattern: "GET /metrics", Needs: door.Metrics, Handle: a.serveMetrics},
		{Pattern: "GET " + Root + "/openapi.json", Needs: door.Read, Queues: true,
			Types: []string{typeObject}, Handle: a.openAPI},
		{Pattern: "GET " + Root + "/events/stream", Needs: door.Read, Streams: true, Queues: true,
			Types:  []string{"text/event-stream"},
			Handle: a.streamEvents},
		{Pattern: "GET " + Root + "/ledger", Needs: door.Read, Queues: true, Handle: a.ledger},
		{Pattern: "GET " + Root + "/queues/{queue}", Needs: door.Read, Queues: true, Handle: a.queue},
		{Pattern: "GET " + Root + "/events/{pos}", Needs: door.Read, Queues: true, Handle: a.event},
		{Pattern: "GET " + Root + "/jobs/{job}/payload", Needs: door.Read | door.Bodies, Queues: true,
			Types: octets, Handle: a.payload},
		{Pattern: "GET " + Root + "/jobs/{job}/result", Needs: door.Read | door.Bodies, Queues: true,
			Types: octets, Handle: a.result},
	}, append(a.pictureRoutes(), a.resourceRoutes()...)...)
}

// Root begins the path of every resource.
const Root = "/api/v1"

// Bounds of the parameter limit.
const (
	DefaultLimit = 100
	maxLimit     = 1000
	maxParams    = 64
)

// SearchTime is how long a search for jobs takes at most, about, unless the Config says otherwise. Its answer
// is what was found by then.
const SearchTime = 2 * time.Second

// Tail is the position of the last event.
func (a *API) Tail(ctx context.Context) (pos int64, err error) {
	err = a.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		pos, err = tx.Tail(ctx)
		return err
	})
	return pos, err
}

// searched is how far a search came in its time.
type searched struct {
	Jobs *int64 `json:"jobs,omitempty"` // the newest so many, and of how many: of all queues
	Of   *int64 `json:"of,omitempty"`
	To   string `json:"to"` // where it goes on
}

// searchedOf is ended as the caller of ctx may see it; nil: the search came to its end.
func searchedOf(ctx context.Context, ended *paging.Ended) *searched {
	if ended == nil {
		return nil
	}
	s := &searched{To: fmt.Sprintf("pos:%d", ended.Reached)}
	if door.CallerOf(ctx).AllQueues() {
		s.Jobs, s.Of = &ended.Looked, &ended.Jobs
	}
	return s
}

// sendItems sends lines of JSON as an object with items, the address of the next page or null, how far a
// search came unless that is nil, and which jobs are not in it unless that is nil.
func sendItems(w http.ResponseWriter, lines [][]byte, next string, far *searched, absent *absentJSON) error {
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
	if far != nil {
		text, err := json.Marshal(far)
		if err != nil {
			return err
		}
		body.WriteString(",\n\"searched\":")
		body.Write(text)
	}
	if absent != nil {
		text, err := json.Marshal(absent)
		if err != nil {
			return err
		}
		body.WriteString(",\n\"left\":")
		body.Write(text)
	}
	body.WriteString("}\n")
	w.Header().Set("Content-Type", "application/json")
	return door.Send(w, body.Bytes())
}

// ErrQuery means that the query of an address is none.
var ErrQuery = door.Refusal(http.StatusBadRequest, "usage", "the query of the address cannot be read")

// QueryOf returns the parameters of a page. A form sends a field that is empty, which means that it is not
// given.
func QueryOf(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, ErrQuery
	}
	for name, values := range query {
		values = slices.DeleteFunc(values, func(v string) bool { return strings.TrimSpace(v) == "" })
		if query[name] = values; len(values) == 0 {
			delete(query, name)
		}
	}
	return query, nil
}
