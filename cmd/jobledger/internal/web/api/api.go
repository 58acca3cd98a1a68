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
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// API answers programs. It is safe for concurrent use.
type API struct {
	Config
	streams     door.Shares
	books       view.Kept[view.Books]
	examined    view.Kept[[]doctor.Finding]
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
	Examine  func(context.Context) ([]doctor.Finding, error)
	Report   func(format string, args ...any) // logs a fault of the server, in one line
}

// New returns an API.
func New(c Config) *API {
	return &API{Config: c, StreamWrite: defaultStreamWrite, streams: door.Shares{Most: maxStreamsGrant}}
}

// Routes are those of the API.
func (a *API) Routes() []door.Route {
	return append([]door.Route{
		{Pattern: "GET " + Root + "/openapi.json", Needs: door.Read, Queues: true,
			Types: []string{typeObject}, Handle: a.openAPI,
			Doc: door.Doc{ID: "getOpenAPI", Summary: "This document."}},
		{Pattern: "GET " + Root + "/events/stream", Needs: door.Read, Streams: true, Queues: true,
			Types:  []string{"text/event-stream"},
			Handle: a.streamEvents,
			Doc: door.Doc{ID: "streamEvents", Query: StreamParams,
				Summary: "Events as they are recorded, as server-sent events.",
				Says: map[int]string{200: "Events as they are recorded, as server-sent events, after hello or reset: " +
					"{ledger, restores, pos}."}}},
		{Pattern: "GET " + Root + "/ledger", Needs: door.Read, Queues: true, Handle: a.ledger,
			Doc: door.Doc{ID: "getLedger", Query: LedgerParams, Answer: ledgerJSON{},
				Summary: "What the ledger is, up to where it was verified, and limits of requests."}},
		{Pattern: "GET " + Root + "/queues/{queue}", Needs: door.Read, Queues: true, Handle: a.queue,
			Doc: door.Doc{ID: "getQueue", Query: []string{"at"}, Answer: print.StatusThenJSON{},
				Summary: "The state of a queue, as the command status prints it."}},
		{Pattern: "GET " + Root + "/events/{pos}", Needs: door.Read, Queues: true, Handle: a.event,
			Doc: door.Doc{ID: "getEvent", Answer: event.Event{}, Summary: "The event at a position."}},
		{Pattern: "GET " + Root + "/jobs/{job}/payload", Needs: door.Read | door.Bodies, Queues: true,
			Types: octets, Handle: a.payload,
			Doc: door.Doc{ID: "getJobPayload", Query: BodyParams, Summary: "The payload, to the byte."}},
		{Pattern: "GET " + Root + "/jobs/{job}/result", Needs: door.Read | door.Bodies, Queues: true,
			Types: octets, Handle: a.result,
			Doc: door.Doc{ID: "getJobResult", Query: BodyParams, Summary: "The result, to the byte."}},
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

// SearchTime is about how long a search for jobs takes at most, unless the Config says otherwise. The answer
// then has what was found so far.
const SearchTime = 2 * time.Second

// Tail is the position of the last event.
func (a *API) Tail(ctx context.Context) (pos int64, err error) {
	return ledger.Read(ctx, a.Store, func(tx *ledger.Tx) (int64, error) { return tx.Tail(ctx) })
}

// Page is the rest of a page of a list, without its items.
type Page struct {
	Next     *string   `json:"next"`               // the address of the next page; null: there is none
	Searched *Searched `json:"searched,omitempty"` // how far a search came in its time; absent: to its end
	Left     *Left     `json:"left,omitempty"`     // which jobs it lacks; absent: none
}

// Searched is how far a search came in its time.
type Searched struct {
	Jobs *int64 `json:"jobs,omitempty"` // the newest so many; absent for a token of some queues
	Of   *int64 `json:"of,omitempty"`   // of so many, likewise
	To   string `json:"to"`             // where it goes on, as the parameter to
}

// searchedOf is ended as the caller of ctx may see it; nil: the search came to its end.
func searchedOf(ctx context.Context, ended *find.Ended) *Searched {
	if ended == nil {
		return nil
	}
	s := &Searched{To: fmt.Sprintf("pos:%d", ended.Reached)}
	if door.CallerOf(ctx).AllQueues() {
		s.Jobs, s.Of = &ended.Looked, &ended.Jobs
	}
	return s
}

// sendItems sends lines of JSON as an object with items, and what else page has.
func sendItems(w http.ResponseWriter, lines [][]byte, page Page) error {
	rest, err := json.Marshal(page)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	body.WriteString(`{"items":[`)
	for i, line := range lines {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteByte('\n')
		body.Write(bytes.TrimSuffix(line, []byte("\n")))
	}
	body.WriteString("],\n")
	body.Write(rest[1:])
	body.WriteByte('\n')
	w.Header().Set("Content-Type", "application/json")
	return door.Send(w, body.Bytes())
}

// ErrQuery means that the query of an address is none.
var ErrQuery = door.Refusal(http.StatusBadRequest, "usage", "the query of the address cannot be read")

// QueryOf returns the parameters of a page. A form also sends empty fields, which count as not given.
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
