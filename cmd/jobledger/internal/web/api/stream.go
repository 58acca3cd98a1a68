package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Times of a stream.
const (
	StreamKeepalive    = 15 * time.Second // between two comments that say that a stream lives
	StreamBeat         = 2 * time.Second  // between two checks of the credential; a page has a beat at each
	defaultStreamWrite = 30 * time.Second // for a client to read what was sent
)

// StreamParams are the parameters of a stream.
var StreamParams = []string{"after", "kind", "queue", "job", "worker", "actor"}

// stream sends events as they are recorded, as server-sent events.
type stream struct {
	*API
	w      http.ResponseWriter
	filter ledger.Filter
	kept   bool          // the follower's events can be filtered as they are
	end    await.SeenEnd // of the ledger when the stream began
	resets int           // of the follower, which pos is after
	pos    int64         // everything up to it was sent
	is     projection.Identity
	data   func(view.Sent) ([]byte, error)
	beats  bool // an event says every StreamBeat that the server lives: for pages
}

// streamEvents sends the events in their public form.
func (a *API) streamEvents(w http.ResponseWriter, r *http.Request) error {
	return a.stream(r, &stream{API: a, w: w,
		data: func(e view.Sent) ([]byte, error) {
			if e.Kind() != event.KindScheduleSet {
				return e.Line, nil
			}
			return words.JSONLine(Shown(r.Context(), e.Event))
		}})
}

// maxStreamsGrant is how many streams of events one token has.
const maxStreamsGrant = 64

// Stream sends events as they are recorded, each as data has it, and beats between them; the filter is in the
// query of r.
func (a *API) Stream(w http.ResponseWriter, r *http.Request, data func(view.Sent) ([]byte, error)) error {
	return a.stream(r, &stream{API: a, w: w, data: data, beats: true})
}

func (a *API) stream(r *http.Request, out *stream) error {
	w := out.w
	within, cancel := context.WithTimeout(r.Context(), a.Door.AskTimeout)
	defer cancel()
	first, err := out.begin(within, r)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return nil
	}
	give, err := a.streams.Take(r, "streams of events")
	if err != nil {
		h.Del("X-Accel-Buffering")
		h.Set("Retry-After", "5")
		return err
	}
	defer give()
	if !a.Follower.Join(out.end) {
		h.Del("X-Accel-Buffering")
		return door.Refusal(http.StatusServiceUnavailable, "busy", "there are too many streams of events")
	}
	defer a.Follower.Leave()
	// The client has sent all of its request: it has no read deadline any more.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	err = out.run(r, first)
	switch { // the answer has begun, so there is no other one
	case errors.Is(err, os.ErrDeadlineExceeded):
		a.Report(
			"a stream of events was dropped at pos %d: its client read nothing for %s; it may go on from there",
			out.pos, a.StreamWrite)
	case err != nil && r.Context().Err() == nil && !errors.Is(err, errClient):
		a.Door.ProblemOf(err) // it is logged
	}
	return nil
}

// begin reads the request; first is the name of the first message: hello, or reset where the event after
// which the client wants to go on is not in this ledger.
func (o *stream) begin(ctx context.Context, r *http.Request) (first string, err error) {
	query, err := QueryOf(r)
	if err == nil {
		err = o.Within(r, query)
	}
	if err == nil {
		err = CheckParams(query, StreamParams, "kind")
	}
	if err != nil {
		return "", err
	}
	if err := checkQueue(query); err != nil {
		return "", err
	}
	o.filter = ledger.Filter{Queue: query.Get("queue"), Worker: query.Get("worker"), Actor: query.Get("actor")}
	if o.filter.Kinds, err = find.EventKinds(query["kind"]); err != nil {
		return "", err
	}
	after := r.Header.Get("Last-Event-ID")
	after = cmp.Or(after, query.Get("after"))
	number, _, _ := strings.Cut(after, ".")
	pos, err := strconv.ParseInt(number, 10, 64)
	if after != "" && (err != nil || pos < 0) {
		return "", door.BadInput("after", fmt.Sprintf("%.40q names no event", after))
	}
	o.resets, _ = o.Follower.Resets() // before the ledger is read
	err = o.Store.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		if err == nil {
			o.end = await.SeenEnd{}
			err = o.end.Move(ctx, tx, tail)
		}
		if err == nil {
			o.is, err = projection.IdentityOf(ctx, tx, tail)
		}
		if err != nil {
			return err
		}
		o.pos = tail
		if id := query.Get("job"); id != "" {
			if o.filter.Job, err = numberOf(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	o.kept = o.filter.Queue == "" && o.filter.Worker == "" && o.filter.Actor == "" && o.filter.Job == 0
	if err != nil || after == "" {
		return "hello", err
	}
	there := pos <= o.pos
	if there && number != after {
		last, err := view.EventsOf(ctx, o.Store, ledger.Filter{After: pos - 1, Until: max(pos, 1)})
		if err != nil {
			return "", err
		}
		there = len(last) == 1 && last[0].ID() == after
	}
	if !there {
		return "reset", nil
	}
	o.pos = pos
	return "hello", nil
}

// errClient means that an event could not be sent: the client has gone.
var errClient = errors.New("web: the client of a stream has gone")

// run sends events until the client goes, its credential ends, or the server does.
func (o *stream) run(r *http.Request, first string) error {
	text, err := o.beginning(first)
	if err == nil {
		err = o.send("retry: 2000\n" + text)
	}
	if err != nil {
		return err
	}
	ticker := time.NewTicker(StreamBeat)
	defer ticker.Stop()
	said := time.Now()
	for {
		text, more, err := o.next(r.Context())
		if err == nil && text != "" {
			err = o.send(text)
		}
		if err != nil {
			return err
		}
		if more == nil {
			continue
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-o.Door.Closing():
			return o.send("event: bye\ndata: {\"reason\":\"the server is ending\"}\n\n")
		case <-more:
		case <-ticker.C:
			text := ""
			admitted := o.Door.Admits(r)
			switch {
			case !admitted:
				text = "event: bye\ndata: {\"reason\":\"the credential is not valid any more\"}\n\n"
			case o.beats:
				text = fmt.Sprintf("event: beat\ndata: {\"pos\":%d,\"at\":%q}\n\n", o.pos, event.FormatTime(o.Now()))
			case time.Since(said) >= StreamKeepalive-StreamBeat/2:
				text = ": still there\n\n"
			}
			if text == "" {
				continue
			}
			said = time.Now()
			if err := o.send(text); err != nil || !admitted {
				return err
			}
		}
	}
}

// beginning is a message that says of which ledger the others are, and after which position they follow.
func (o *stream) beginning(name string) (string, error) {
	data, err := json.Marshal(map[string]any{"pos": o.pos, "ledger": words.TextOrNull(o.is.ID),
		"restores": o.is.Restores})
	return fmt.Sprintf("event: %s\ndata: %s\n\n", name, data), err
}

// next returns the messages of the next events, and moves pos past them. more is closed when there are
// others; nil: there may be some already.
func (o *stream) next(ctx context.Context) (text string, more <-chan struct{}, err error) {
	events, held, last, more := o.Follower.After(o.pos)
	if n, pos := o.Follower.Resets(); n != o.resets {
		o.resets, o.pos = n, pos
		err := o.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
			o.is, err = projection.IdentityOf(ctx, tx, pos)
			return err
		})
		if err == nil {
			text, err = o.beginning("reset")
		}
		return text, nil, err
	}
	if !held || !o.kept && len(events) > 0 {
		f := o.filter
		f.After, f.Until, f.Limit = o.pos, last, view.PageEvents
		if events, err = view.EventsOf(ctx, o.Store, f); err != nil {
			return "", nil, err
		}
		if len(events) == view.PageEvents {
			last = events[view.PageEvents-1].Pos
		}
	} else if len(events) > 0 {
		last = events[len(events)-1].Pos
	}
	var b strings.Builder
	for _, e := range events {
		if len(o.filter.Kinds) > 0 && !slices.Contains(o.filter.Kinds, e.Kind()) {
			continue
		}
		data, err := o.data(e)
		if err != nil {
			return "", nil, err
		}
		fmt.Fprintf(&b, "id: %s\nevent: %s\ndata: %s\n\n", e.ID(), e.Kind(), strings.TrimSuffix(string(data), "\n"))
	}
	if last > o.pos {
		o.pos, more = last, nil
	}
	return b.String(), more, nil
}

// send sends text at once. A client that does not read it in time is dropped.
func (o *stream) send(text string) error {
	control := http.NewResponseController(o.w)
	err := control.SetWriteDeadline(time.Now().Add(o.StreamWrite))
	if err == nil {
		_, err = o.w.Write([]byte(text)) // #nosec G705 -- text/event-stream, which no browser shows as a page
	}
	if err == nil {
		err = control.Flush()
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.Join(errClient, err)
	}
	return err
}
