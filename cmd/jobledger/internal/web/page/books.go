package page

import (
	"fmt"
	"net/http"
	"time"

	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
)

// booksView is what the page of verification shows of the ledger as a whole.
type booksView struct {
	Books     view.Books
	Head      string // when the last event was
	Note      string // the text of the checkpoint of all events; "": it is not known
	Unsealed  string // why there is none
	Seals     string // how many there are
	HandedOut string // when the last checkpoint was handed out; "": none was
	Forked    string // how the ledger differs from that; "": it does not
	Counts    *words.Table
	Doctor    []frame.Concern
	Examined  bool // doctor has looked
	Blind     bool // it could not
}

// addBooks puts the Books into words.
func (v *booksView) addBooks(p *Pages) error {
	zone, b := p.Now().Location(), v.Books
	s := b.State
	v.Seals = words.Count(s.Seals, "seal")
	v.Head = words.Millis(b.Last.At.In(zone))
	switch {
	case s.Head != nil:
		text, err := s.Head.SignWith(nil)
		if err != nil {
			return err
		}
		v.Note = string(text)
	case s.On:
		v.Unsealed = words.Count(s.Unsealed, "event") + " " + words.Plural(s.Unsealed, "has", "have") +
			" no block of hashes yet"
	}
	if s.LastHandedOut != nil {
		v.HandedOut = words.Time(s.LastHandedOut.At.In(zone)) + ", " + words.Age(s.LastHandedOut.At, p.Now())
	}
	if s.Compared != nil && !s.Compared.Same() {
		v.Forked = s.Compared.String()
	}
	v.count(zone)
	return nil
}

// count counts what happened to the ledger as a whole.
func (v *booksView) count(zone *time.Location) {
	b := v.Books
	t := &words.Table{Columns: []words.Column{{Title: "WHAT"}, {Title: "COUNT", Right: true},
		{Title: "LAST"}, {Title: "BY"}}}
	for _, row := range []struct {
		what string
		view.Happened
	}{{"restored from a backup", b.Restores}, {"rebuilt from the events", b.Rebuilds},
		{"imported from a file", b.Imports}} {
		last, by := "never", ""
		if row.Last != nil {
			last = fmt.Sprintf("pos %d, %s", row.Last.Pos, words.Time(row.Last.At.In(zone)))
			by = row.Last.Actor
		}
		t.Add(row.what, fmt.Sprint(row.Count), last, by)
	}
	t.Add("jobs whose payload was erased", fmt.Sprint(b.Erased), "", "")
	t.Add("events in files of the archive", fmt.Sprint(b.InArchive), "", "")
	left := ""
	if b.Removed.Pos > 0 {
		left = fmt.Sprintf("pos %d, %s", b.Removed.Pos, words.Time(b.Removed.At.In(zone)))
	}
	t.Add("events that have left the ledger for them", fmt.Sprint(b.Removed.Events), left, "")
	v.Counts = t
}

// examine shows what doctor finds.
func (v *booksView) examine(r *http.Request, p *Pages) {
	found, err := p.Examined(r.Context())
	if v.Examined = err == nil; err != nil {
		v.Blind = true
		p.Report("doctor: %v", err)
	}
	for _, f := range found {
		level := "warning"
		if f.Severity == doctor.Problem {
			level = "problem"
		}
		v.Doctor = append(v.Doctor, frame.Concern{Level: level, Text: frame.Retimed(f.Seen, p.Now().Location()),
			Code: f.Code, Remedy: f.Remedy})
	}
}
