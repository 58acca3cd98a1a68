package api

import (
	"context"
	"net/http"
	"time"

	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/tree"
)

// Books are what is known of the ledger as a whole, of at most a moment ago.
func (a *API) Books(ctx context.Context) (view.Books, error) {
	return a.books.Read(0, func() (b view.Books, err error) {
		err = a.Store.Read(ctx, func(tx *ledger.Tx) error {
			b, err = view.ReadBooks(ctx, tx)
			return err
		})
		return b, err
	})
}

// examinedFor is how long the findings of an examination are used again at least: it looks at files and
// processes.
const examinedFor = 5 * time.Second

// Examined returns what the verb doctor finds.
func (a *API) Examined(ctx context.Context) ([]doctor.Finding, error) {
	return a.examined.Read(examinedFor, func() ([]doctor.Finding, error) { return a.Examine(ctx) })
}

// integrity sends what was verified, and what is known of the ledger as a whole.
func (a *API) integrity(w http.ResponseWriter, r *http.Request) error {
	if _, err := ReadParams(r, nil); err != nil {
		return err
	}
	return a.sendIntegrity(w, r)
}

// checkAll has the whole ledger verified, and sends what was verified before that.
func (a *API) checkAll(w http.ResponseWriter, r *http.Request) error {
	if _, err := ReadParams(r, nil); err != nil {
		return err
	}
	a.Verifier.AskWhole()
	return a.sendIntegrity(w, r)
}

func (a *API) sendIntegrity(w http.ResponseWriter, r *http.Request) error {
	v := a.Verifier.Last()
	out := verifiedJSON(v)
	type checkJSON struct {
		Code     string `json:"code"`
		Finds    string `json:"finds"`
		Findings int    `json:"findings"`
		Until    *int64 `json:"until"` // null: it was not carried out
	}
	var checks []checkJSON
	for _, c := range v.Checks() {
		check := checkJSON{Code: c.Code, Finds: c.Finds, Findings: c.Findings}
		if c.Done {
			check.Until = &c.Until
		}
		checks = append(checks, check)
	}
	out["checks"], out["stopped"] = checks, v.Stopped
	out["whole"] = map[string]any{"until": nil, "at": render.TimeOrNull(v.WholeAt), "seconds": nil,
		"next": render.TimeOrNull(v.Next)}
	if !v.WholeAt.IsZero() {
		out["whole"] = map[string]any{"until": v.Whole, "at": event.FormatTime(v.WholeAt),
			"seconds": v.WholeTook.Seconds(), "next": render.TimeOrNull(v.Next)}
	}
	b, err := a.Books(r.Context())
	if err != nil {
		return err
	}
	if err := addBooks(out, b); err != nil {
		return err
	}
	out["doctor"] = nil
	if door.CallerOf(r.Context()).Has(door.Operate) {
		if found, err := a.Examined(r.Context()); err == nil {
			out["doctor"] = found
		} else {
			a.Report("doctor: %v", err)
		}
	}
	return sendJSON(w, v.Until, out)
}

// addBooks adds what is known of the ledger as a whole.
func addBooks(out map[string]any, b view.Books) error {
	s := b.State
	head := map[string]any{"pos": b.Last.Pos, "at": render.TimeOrNull(b.Last.At), "unsealed": s.Unsealed,
		"origin": nil, "root": nil, "text": nil}
	if s.Head != nil {
		text, err := s.Head.SignWith(nil)
		if err != nil {
			return err
		}
		head["pos"], head["origin"], head["root"], head["text"] = s.Size, s.Head.Origin, s.Head.Root.String(),
			string(text)
	}
	out["head"] = head
	seals := map[string]any{"sealing": s.On, "count": s.Seals, "handed_out": s.HandedOut,
		"last": sealJSON(s.Last), "checkpoint": sealJSON(s.LastHandedOut), "verdict": nil}
	if s.Compared != nil {
		seals["verdict"] = s.Compared.Verdict
	}
	out["seals"] = seals
	out["restores"], out["rebuilds"], out["imports"] = happenedJSON(b.Restores), happenedJSON(b.Rebuilds),
		happenedJSON(b.Imports)
	out["erased_jobs"] = b.Erased
	out["archive"] = map[string]any{"files": b.Segments, "events": b.InArchive, "removed_jobs": b.Removed.Jobs,
		"removed_events": b.Removed.Events, "removed_at": render.TimeOrNull(b.Removed.At)}
	return nil
}

func sealJSON(s *tree.Seal) any {
	if s == nil {
		return nil
	}
	return map[string]any{"size": s.Size, "at": event.FormatTime(s.At), "root": s.Root.String()}
}

func happenedJSON(h view.Happened) map[string]any {
	out := map[string]any{"count": h.Count, "last": nil}
	if h.Last != nil {
		out["last"] = map[string]any{"pos": h.Last.Pos, "at": event.FormatTime(h.Last.At), "actor": h.Last.Actor}
	}
	return out
}

// verifiedJSON is what was verified.
func verifiedJSON(v view.Verification) map[string]any {
	out := map[string]any{"since": v.Since, "until": v.Until, "at": nil, "running": v.Running,
		"findings": v.Findings}
	if v.Findings == nil {
		out["findings"] = []any{}
	}
	if !v.At.IsZero() {
		out["at"] = event.FormatTime(v.At)
	}
	return out
}
