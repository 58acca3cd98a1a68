package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
	"jobledger/ledger/segment"
	"jobledger/projection"
	"jobledger/projection/inbox"
)

// Problem is an error in the format of RFC 9457, with the fields of the command line's errors.
type Problem = wire.Problem

// Refusal is a problem of the request, before any command ran.
func Refusal(status int, code, detail string) *Problem {
	return &Problem{Status: status, Code: code, Detail: detail}
}

// BadInput is a problem of one field of the request: a parameter, or a member of JSON.
func BadInput(field, detail string) *Problem {
	p := Refusal(http.StatusBadRequest, "usage", detail)
	p.Field = field
	return p
}

// BadInputs is a problem of at least one part of the request.
func BadInputs(all []wire.InputError) *Problem {
	p := BadInput(all[0].Field, all[0].Detail)
	if len(all) > 1 {
		p.Errors = all
	}
	return p
}

// ProblemOf is err as a problem; its Status is 0 if err is not an error of the request.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	f := fault.Of(err)
	p := &Problem{Status: f.Status, Detail: f.InRequest(), Code: f.Word, Exit: &f.Exit,
		Hint: words.TextOrNull(f.Hint)}
	if in, known := wire.InputOf(err); known && p.Status == http.StatusBadRequest {
		f.Field = in.Field
		if in.Line > 0 {
			in.Detail = p.Detail
			p.Errors = []wire.InputError{in}
		}
	}
	if p.Status == http.StatusBadRequest {
		p.Field = f.Field
	}
	if missing, ok := errors.AsType[*inbox.MissingError](err); ok && missing.Waits {
		p.Code = "in_inbox"
	}
	return p
}

// MaxAnswer is the most bytes that an answer has.
const MaxAnswer = 8 << 20

// ErrTooLarge means that an answer has more than MaxAnswer bytes.
var ErrTooLarge = Refusal(http.StatusRequestEntityTooLarge, "too_large",
	"the answer is larger than 8 MiB: ask for fewer, with limit, after or to")

// ProblemOf is err as a problem. An error that the request did not cause is logged, and the answer has no
// more of it than the number of the line in the log.
func (d *Door) ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if errors.Is(err, ledger.ErrReplaced) || errors.Is(err, ledger.ErrClosed) {
		d.lose(err)
	}
	if errors.Is(err, ledger.ErrSecondName) { // known since the start, and said then
		if names := ledger.NamesOf(d.Store.Path()); names.Links < 2 && !names.Mounted {
			d.lose(fmt.Errorf("%w; the other one has gone: start the server again", err))
		}
		return Refusal(http.StatusServiceUnavailable, "busy",
			"the file of the ledger has a second name, and is only read; try again when that has gone")
	}
	p := ProblemOf(err)
	known := p.Status != 0
	if errors.Is(err, context.DeadlineExceeded) && p.Status == http.StatusServiceUnavailable {
		p.Detail = "the ledger is busy: there was no answer in time, perhaps because another process holds its " +
			"lock; try again"
	}
	if errors.Is(err, projection.ErrArchived) { // which is something, elsewhere
		p.Code = "archived"
		where, tail, ok := d.segmentOf(err)
		if p.Pos = tail; ok {
			p.Hint = &where
		}
	}
	if errors.Is(err, segment.ErrDamaged) { // its detail names the file
		p.Status, known = http.StatusInternalServerError, true
		d.Report("%s", p.Detail)
	}
	if !known || errors.Is(err, context.Canceled) {
		id := ulid.Make().String()
		d.Report("%s: %s", id, p.Detail)
		p = &Problem{Status: http.StatusInternalServerError, Code: fault.WordOf(fault.ExitUnexpected), Exit: p.Exit,
			Detail: "an unexpected error; the log of the server has it as " + id}
	}
	return p
}

// segmentOf says which file of the archive has the event that err, a [projection.ArchivedError], is about,
// and where the ledger ends.
func (d *Door) segmentOf(err error) (text string, tail int64, ok bool) {
	asked, is := errors.AsType[*projection.ArchivedError](err)
	if !is || d.Store == nil {
		return "", 0, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err = d.Store.Read(ctx, func(tx *ledger.Tx) error {
		ok = false
		if tail, err = tx.Tail(ctx); err != nil {
			return err
		}
		all, err := projection.Segments(ctx, tx, 0)
		for _, s := range all {
			if first := max(asked.Pos, 1); s.Lo < first && first <= s.Hi {
				text = fmt.Sprintf("the events %d to %d are in the file %s of its archive: the server reads it "+
					"where it knows the folder", s.Lo+1, s.Hi, segment.Range{Lo: s.Lo, Hi: s.Hi}.Name())
				ok = true
			}
		}
		return err
	})
	return text, tail, ok && err == nil
}

// WriteProblem answers with p.
func WriteProblem(w http.ResponseWriter, p *Problem) {
	out := *p
	out.Type, out.Title = "urn:jobledger:problem:"+p.Code, http.StatusText(p.Status)
	body, err := json.Marshal(out)
	if err != nil { // strings and numbers only: it cannot be
		body = nil
	}
	w.Header().Set("Content-Type", "application/problem+json")
	sendProblem(w, p, body)
}

func sendProblem(w http.ResponseWriter, p *Problem, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	switch p.Status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		h.Set("Retry-After", "1")
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="jobledger"`)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}
