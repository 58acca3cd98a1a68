package page

import (
	"fmt"
	"net/http"
	"net/url"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/sqltext"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// integrityView is what the page of verification shows.
type integrityView struct {
	frame.Frame
	view.Verification
	Checked  frame.Age // when the last check was
	Count    int64
	Whole    frame.Age // when all was checked
	Took     string    // up to where that was, and how long it took
	Daily    string    // the time of the day when it is; "": only when it is asked for
	Checks   []checkView
	Bad      int // of them, so many have findings
	Table    *words.Table
	Events   *words.Table // restores, rebuilds, imports, seals, erasures
	Operates bool

	booksView

	Elsewhere frame.Moment // that the other pages are about, as links lead to them from here
}

// checkView is a check with its result in the last verification.
type checkView struct {
	Code          string
	Finds         []frame.Marked
	Class, Result string
	Until         string // the event up to which that holds; "": it was not carried out
}

// addChecks adds a line for each check.
func (v *integrityView) addChecks() {
	for _, c := range v.Verification.Checks() {
		shown := checkView{Code: c.Code, Finds: frame.MarkedText(c.Finds), Class: "good", Result: "nothing found",
			Until: fmt.Sprint(c.Until)}
		switch {
		case c.Findings > 0:
			v.Bad++
			shown.Class, shown.Result = "problem", words.Count(int64(c.Findings), "finding")
		case !c.Done:
			shown.Class, shown.Result, shown.Until = "quiet", "not checked", ""
		case v.Stopped:
			shown.Class, shown.Result = "warning", "nothing found before the check stopped"
		}
		v.Checks = append(v.Checks, shown)
	}
}

// integrityKinds are the events that concern the whole ledger.
var integrityKinds = []event.Kind{event.KindRebuilt, event.KindRestored, event.KindImported,
	event.KindSealing, event.KindArchived, event.KindErased}

// integrityPage shows what was verified, and what happened to the ledger as a whole.
func (p *Pages) integrityPage(w http.ResponseWriter, r *http.Request) error {
	shown := integrityView{Verification: p.Verifier.Last(),
		Operates: door.CallerOf(r.Context()).Has(door.Operate)}
	zone := p.Now().Location()
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) (err error) {
		if shown.Elsewhere, err = p.MomentOf(r, query, tx); err != nil {
			return err
		}
		shown.Frame, err = p.FrameAt(r, url.Values{}, tx, frame.Moment{}, "Integrity")
		shown.Timeless = true
		if err != nil || shown.Pos == 0 {
			return err
		}
		shown.Events = &words.Table{Columns: []words.Column{{Title: "POS", Right: true}, {Title: "TIME"},
			{Title: "EVENT"}, {Title: "BY"}, {Title: "WHAT"}}}
		whole := ledger.Filter{Kinds: integrityKinds, Limit: 100, Last: true}
		for e, err := range tx.Events(r.Context(), whole) {
			if err != nil {
				return err
			}
			v := p.EventOf(e)
			shown.Events.Add(fmt.Sprint(v.Pos), v.At, v.Kind, v.By, v.What)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if shown.Books, err = p.Books(r.Context()); err != nil {
		return err
	}
	if err := shown.addBooks(p); err != nil {
		return err
	}
	if shown.Operates {
		shown.examine(r, p)
	}
	if !shown.Verification.At.IsZero() {
		shown.Checked, shown.Count = frame.AgeOf(shown.Verification.At, zone), shown.Until-shown.Since
	}
	if !shown.WholeAt.IsZero() {
		shown.Whole = frame.AgeOf(shown.WholeAt, zone)
		shown.Took = fmt.Sprintf("up to pos %d, in %s", shown.Verification.Whole, words.Briefly(shown.WholeTook))
	}
	if !shown.Next.IsZero() {
		shown.Daily = shown.Next.In(zone).Format("15:04")
	}
	shown.addChecks()
	if len(shown.Findings) > 0 {
		shown.Table = print.Findings(shown.Findings)
	}
	shown.Command, shown.API = "jobledger verify", "/api/v1/integrity"
	shown.Link = p.Door.Prefix.At("/integrity") // it has no past
	shown.SQL = sqltext.Kinds(integrityKinds)
	return p.Render(w, "integrity", shown)
}

// checkAll has the whole ledger verified.
func (p *Pages) checkAll(w http.ResponseWriter, r *http.Request) error {
	p.Verifier.AskWhole()
	p.Door.SeeOther(w, r, "/integrity")
	return nil
}
