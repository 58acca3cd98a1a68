package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

const (
	defaultSpan = 6 * time.Hour
	maxColumns  = 8192
	maxClaims   = 50_000 // of lanes that nothing is joined in
)

// Parameters of a window of the ledger: those of lanes, and those of other resources about a window.
var (
	LaneParams     = []string{"at", "from", "to", "queue", "worker", "px", "group"}
	LanePageParams = []string{"at", "from", "to", "queue", "worker", "group"}
	FailureParams  = []string{"at", "from", "to", "queue", "worker", "given_up"}
	SeriesParams   = []string{"at", "from", "to", "queue", "metric", "step"}
	DiffParams     = []string{"at", "from", "to", "limit"}
)

// readLanes reads the claims of a window by worker.
func readLanes(r *http.Request, tx *ledger.Tx, s query.Lanes) (any, error) {
	lanes, err := s.Read(r.Context(), tx)
	if err == nil {
		lanes.Pos, err = namedPos(r.Context(), tx, s)
	}
	if err != nil {
		return nil, err
	}
	if s.Columns == 0 && lanes.Claims > maxClaims {
		return nil, door.Refusal(http.StatusRequestEntityTooLarge, "too_large",
			fmt.Sprintf("more than %s: give px, the width of the picture, or a shorter window",
				words.Count(maxClaims, "claim")))
	}
	out := lanesJSON{LaneChart: *lanes, Before: lanes.Did.More, Acts: []actJSON{}}
	for _, a := range lanes.Did.List {
		at := min(max(a.At.Sub(lanes.From), 0), s.Length()).Milliseconds()
		out.Acts = append(out.Acts, actJSON{at, a.Pos, a.Actor, a.Kind().String(), print.ActWords(a), a.Count,
			a.Reason})
	}
	return out, nil
}

// lanesJSON are lanes for programs.
type lanesJSON struct {
	query.LaneChart
	Acts   []actJSON `json:"acts"`
	Before int       `json:"acts_before"` // how many acts came before these, at least
}

// actJSON is what an operator did.
type actJSON struct {
	At     int64  `json:"at"` // milliseconds after the beginning of the window
	Pos    int64  `json:"pos"`
	By     string `json:"by"`
	Kind   string `json:"kind"`  // of the event
	Words  string `json:"words"` // as in: paused mail
	Count  int    `json:"count"` // jobs that one command did it to
	Reason string `json:"reason"`
}

// sendJSON answers with value, which has everything up to pos.
func sendJSON(w http.ResponseWriter, pos int64, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(body) > door.MaxAnswer {
		return door.ErrTooLarge
	}
	h := w.Header()
	h.Set("Jobledger-Pos", strconv.FormatInt(pos, 10))
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Content-Type", "application/json")
	return door.Send(w, append(body, '\n'))
}

// eventAt leads to the page of the event at a position.
func (a *API) eventAt(w http.ResponseWriter, r *http.Request) error {
	e, _, err := a.eventOf(r)
	if err != nil {
		return err
	}
	target := fmt.Sprintf("/events?after=%d&limit=20#e%d", e.Pos-1, e.Pos)
	if e.Job != "" && e.Kind() != event.KindHeartbeat {
		target = fmt.Sprintf("/jobs/%s#e%d", e.Job, e.Pos)
	}
	a.Door.SeeOther(w, r, target)
	return nil
}
