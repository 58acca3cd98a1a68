package api

import (
	"net/http"
	"strconv"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// LedgerParams are the parameters of the resource ledger.
var LedgerParams = []string{"at"}

// ledgerJSON is what the ledger is.
type ledgerJSON struct {
	// 32 digits in hex, which copies of the ledger share; null before its first event
	ID     *string `json:"id"`
	Engine string  `json:"engine"`
	Schema int     `json:"schema"`
	Pos    int64   `json:"pos"`
	// null: there is none; absent for a token of some queues
	LastEventAt **string `json:"last_event_at,omitempty"`
	Restores    int64    `json:"restores"`
	Erasures    *int64   `json:"erasures,omitempty"` // absent for a token of some queues
	// up to where; without findings for a token of some queues
	Verified verifiedJSON `json:"verified"`
	Now      string       `json:"now" openapi:"format=date-time"`
	Version  string       `json:"version"`
	Limits   limitsJSON   `json:"limits"`
}

// limitsJSON are limits of requests and answers.
type limitsJSON struct {
	Payload     int `json:"payload_bytes"`
	Answer      int `json:"answer_bytes"`
	Page        int `json:"page"`         // the most that limit may be
	PageDefault int `json:"page_default"` // what limit is unless it is given
	Wait        int `json:"wait_seconds"` // the longest that a request may wait for a job
}

// ledger sends what the ledger is, up to where it was verified, and what requests may ask for. A caller that
// is for some queues does not get when the last event was, erasures and findings: these can be of other
// queues. Nor does it get how many events there were at a moment of the past.
func (a *API) ledger(w http.ResponseWriter, r *http.Request) error {
	query, err := ReadParams(r, LedgerParams)
	if err != nil {
		return err
	}
	all := door.CallerOf(r.Context()).AllQueues()
	if !all && query.Has("at") {
		return door.Refusal(http.StatusForbidden, "forbidden",
			"the token is for some queues only, and gets what the ledger is now: without the parameter at")
	}
	var tail, pos int64
	var last *string
	var is projection.Identity
	err = a.Store.Read(r.Context(), func(tx *ledger.Tx) (err error) {
		if tail, err = tx.Tail(r.Context()); err != nil {
			return err
		}
		m, err := a.asked(r.Context(), tx, query)
		if pos = m.Pos; err != nil || pos == 0 {
			return err
		}
		e, _, err := tx.OneEvent(r.Context(), ledger.Filter{Until: pos, Last: true})
		if err != nil {
			return err
		}
		last = new(event.FormatTime(e.At))
		is, err = projection.IdentityOf(r.Context(), tx, pos)
		return err
	})
	if err != nil {
		return err
	}
	engine := "sqlite"
	if ledger.IsServerAddress(a.Door.Store.Path()) {
		engine = "postgres"
	}
	out := ledgerJSON{ID: words.TextOrNull(is.ID), Engine: engine, Schema: a.Door.Store.SchemaVersion(),
		Pos:      pos,
		Restores: is.Restores, Verified: verified(a.Verifier.Last()), Now: event.FormatTime(a.Now()),
		Version: buildinfo.Read().Version, Limits: limitsJSON{commands.MaxPayload, door.MaxAnswer, maxLimit,
			DefaultLimit, int(wire.MaxWait.Seconds())}}
	if all {
		out.LastEventAt, out.Erasures = &last, &is.Erasures
	} else {
		out.Verified.Findings = nil
	}
	return sendJSON(w, tail, out)
}

// queue sends the status of one queue.
func (a *API) queue(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("queue")
	if err := commands.CheckQueue(name); err != nil {
		return err
	}
	missing := fault.Exitf(fault.ExitNothing, "there is no queue %s", name)
	if !door.CallerOf(r.Context()).Queue(name) {
		return missing
	}
	params, err := ReadParams(r, []string{"at"})
	if err != nil {
		return err
	}
	tail, err := a.Tail(r.Context())
	if err != nil {
		return err
	}
	var line any
	err = a.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		now := a.now(r.Context())
		past, err := a.Past(r.Context(), tx, params)
		if err != nil {
			return err
		}
		found, err := status.Queues{At: past.Or(now)}.Read(r.Context(), tx)
		for _, q := range found {
			if q.Name == name {
				line = print.StatusJSON(q, past, now)
			}
		}
		return err
	})
	if err == nil && line == nil {
		err = missing
	}
	if err != nil {
		return err
	}
	return sendLine(w, tail, line)
}

// errNoEvent is the answer about a position without an event.
func errNoEvent(pos int64) error {
	return fault.Exitf(fault.ExitNothing, "there is no event at pos %d", pos)
}

// eventOf returns the event at the position in the path of r, and where the ledger ends.
func (a *API) eventOf(r *http.Request) (e event.Event, tail int64, err error) {
	pos, err := strconv.ParseInt(r.PathValue("pos"), 10, 64)
	if err != nil || pos < 1 {
		return e, 0, door.BadInput("pos", "the address of an event is /events/POS")
	}
	if _, err := ReadParams(r, nil); err != nil {
		return e, 0, err
	}
	err = a.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		if tail, err = tx.Tail(r.Context()); err == nil {
			err = projection.AfterHorizon(r.Context(), tx, pos-1)
		}
		if err != nil {
			return err
		}
		found := false
		if e, found, err = tx.EventAt(r.Context(), pos); err == nil && !found {
			err = errNoEvent(pos)
		}
		return err
	})
	return e, tail, err
}

// event sends the event at a position.
func (a *API) event(w http.ResponseWriter, r *http.Request) error {
	e, tail, err := a.eventOf(r)
	if err != nil {
		return err
	}
	if !door.CallerOf(r.Context()).AllQueues() { // such a caller sees the events of jobs of its queues
		if e.Job == "" {
			return errNoEvent(e.Pos)
		}
		r.SetPathValue("job", string(e.Job))
		if a.Within(r, nil) != nil {
			return errNoEvent(e.Pos)
		}
	}
	return sendLine(w, tail, Shown(r.Context(), e))
}

// sendLine answers with v as a line of JSON, which has everything up to pos.
func sendLine(w http.ResponseWriter, pos int64, v any) error {
	line, err := words.JSONLine(v)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Jobledger-Pos", strconv.FormatInt(pos, 10))
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Content-Type", "application/json")
	return door.Send(w, line)
}
