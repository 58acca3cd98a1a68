package work

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// claimJSON is the answer about a claim for its owner.
type claimJSON struct {
	words.FullJobJSON
	EndBy *string `json:"end_by"` // when the maximum runtime in force ends it
	Salt  *string `json:"salt"`   // base64; the digests of what its command writes begin with it
}

// shape says how an answer has jobs.
type shape bool

const (
	whole   shape = false
	minimal shape = true // without what is null, 0, false or empty, as [wire.Minimal] says
)

// shapeOf returns the shape that r prefers, and says in the answer that it has it.
func shapeOf(w http.ResponseWriter, r *http.Request) shape {
	for _, header := range r.Header["Prefer"] {
		for one := range strings.SplitSeq(header, ",") {
			one, _, _ = strings.Cut(one, ";")
			if strings.EqualFold(strings.ReplaceAll(one, " ", ""), wire.PreferMinimal) {
				w.Header()["Preference-Applied"] = []string{wire.PreferMinimal}
				return minimal
			}
		}
	}
	return whole
}

// claim is a claim as its owner gets it.
func (s shape) claim(j projection.Job) any {
	endBy, salt := words.TimeOrNull(j.EndBy), (*string)(nil)
	if len(j.Salt) > 0 {
		salt = new(base64.StdEncoding.EncodeToString(j.Salt))
	}
	if s == whole {
		return claimJSON{FullJobJSON: words.ToFullJSON(j, true), EndBy: endBy, Salt: salt}
	}
	a := wire.JobAnswer{Job: words.ToJSON(j), EndBy: endBy, Salt: salt}
	a.LeaseToken = words.TextOrNull(j.Token)
	a.Payload, a.PayloadBase64 = wire.Text(j.Payload)
	return a.Minimal()
}

// either is a T, or a [wire.Minimal] for a client that prefers that.
type either[T any] any

func (s shape) claims(jobs []projection.Job) []either[claimJSON] {
	out := make([]either[claimJSON], len(jobs))
	for i, j := range jobs {
		out[i] = s.claim(j)
	}
	return out
}

// enqueuedJSON is the answer about a job for its producer.
type enqueuedJSON struct {
	words.JobJSON
	Existing bool `json:"existing"`           // it was there before
	Replaced bool `json:"replaced,omitempty"` // its payload is now the one that was asked for
	Left     bool `json:"left,omitempty"`     // it has begun, and keeps its own payload
}

// enqueued is a job as its producer gets it.
func (s shape) enqueued(e commands.Enqueued) any {
	if s == minimal {
		return wire.JobAnswer{Job: words.ToJSON(e.Job), Existing: e.Existing, Replaced: e.Replaced,
			Left: e.Left}.Minimal()
	}
	return enqueuedJSON{words.ToJSON(e.Job), e.Existing, e.Replaced, e.Left}
}

// commandAnswer is what became of one outcome or heartbeat.
type commandAnswer struct {
	Token string `json:"token"`
	// after it; null: it was refused, and the job is unknown
	Job     either[ownedJSON] `json:"job" openapi:"null"`
	Problem *wire.Problem     `json:"problem"` // null: it is recorded
}

// ownedJSON is a job as the owner of its claim gets it after a command.
type ownedJSON struct {
	words.JobJSON
	EndBy *string `json:"end_by"` // when the maximum runtime in force ends it
}

// owned is a job as the owner of its claim gets it after a command.
func (s shape) owned(j projection.Job) any {
	if s == minimal {
		return wire.JobAnswer{Job: words.ToJSON(j), EndBy: words.TimeOrNull(j.EndBy)}.Minimal()
	}
	return ownedJSON{words.ToJSON(j), words.TimeOrNull(j.EndBy)}
}

// items is a list.
type items[T any] struct {
	Items []T `json:"items"`
}

// problemOf is the answer to one command of several.
func problemOf(err error) *wire.Problem {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*wire.Problem](err); ok {
		return p
	}
	p := door.ProblemOf(err)
	p.Status = cmp.Or(p.Status, http.StatusInternalServerError)
	p.Type, p.Title = "urn:jobledger:problem:"+p.Code, http.StatusText(p.Status)
	return p
}

// errHidden is the answer about a job that is not there, or of a queue that the token is not for.
func errHidden(id event.JobID) error {
	return problemOf(fault.Exitf(fault.ExitNoJob, "%w: %.80s", commands.ErrNoJob, id))
}

// send answers with v as JSON.
func (m *Room) send(w http.ResponseWriter, r *http.Request, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := w.Header()
	m.setPos(r.Context(), h)
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	if _, err := w.Write(append(text, '\n')); err != nil {
		return errors.Join(context.Canceled, err) // the client has gone
	}
	return nil
}

// empty answers that there is nothing.
func (m *Room) empty(w http.ResponseWriter, r *http.Request) error {
	m.setPos(r.Context(), w.Header())
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// setPos names a position that the answer includes, unless m.write has.
func (m *Room) setPos(ctx context.Context, h http.Header) {
	if h.Get(posHeader) != "" {
		return
	}
	_ = m.Service.Store.Read(ctx, func(tx *ledger.Tx) error {
		pos, err := tx.Tail(ctx)
		if err == nil {
			h.Set(posHeader, strconv.FormatInt(pos, 10))
		}
		return err
	}) // without it, the client asks
}
