package frame

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/projection/status"
	"jobledger/projection/verdict"
)

// Sizes of the strip, in which people and machines are above what failed.
const (
	stripWidth  = 240 // columns
	stripAbove  = 7   // the height of the upper row
	stripHeight = 26
)

// stripSpans are how much time the strip shows; "all" is everything. The first is chosen, unless the reader
// chose another one.
var stripSpans = []struct {
	Name string
	Span time.Duration
}{{"24 h", 24 * time.Hour}, {"6 h", 6 * time.Hour}, {"7 d", 7 * 24 * time.Hour}, {"all", 0}}

// stripView is the strip of a page about now.
type stripView struct {
	Span    string
	Choices []Choice
	Failed  string // the columns of what failed, as a path
	Paused  string // the time for which queues were paused
	Lost    string
	Deploys string
	Other   string // such as restores
}

// newStrip is the strip for the reader of r, up to the position tail.
func newStrip(p *Site, r *http.Request, tail int64) *stripView {
	now, first := p.Now(), p.Moments.First()
	if first.IsZero() {
		return nil
	}
	chosen := stripSpans[0]
	for _, s := range stripSpans {
		if chosenIn(r, stripCookie) == s.Name {
			chosen = s
		}
	}
	from := now.Add(-chosen.Span)
	if chosen.Span == 0 || from.Before(first) {
		from = first
	}
	v := &stripView{Span: chosen.Name}
	for _, s := range stripSpans {
		v.Choices = append(v.Choices, Choice{s.Name, s.Name == chosen.Name})
	}
	v.draw(p.Moments.Strip(from, now, stripWidth, tail), from, now)
	return v
}

// draw draws moments from from to to.
func (v *stripView) draw(moments []view.Moment, from, to time.Time) {
	length := max(to.Sub(from).Seconds(), 1)
	x := func(t time.Time) float64 {
		return min(max(t.Sub(from).Seconds()/length, 0), 1) * stripWidth
	}
	most := 1
	for _, m := range moments {
		if m.Row == view.RowFailures {
			most = max(most, m.Count)
		}
	}
	var failed, paused, lost, deploys, other strings.Builder
	for _, m := range moments {
		at := x(m.At)
		switch {
		case m.Row == view.RowFailures:
			height := max(2, (stripHeight-stripAbove-2)*m.Count/most)
			fmt.Fprintf(&failed, "M%d %dv-%dh1v%dz", int(at), stripHeight, height, height)
		case m.Kind == "queue_paused":
			end := to
			if !m.Until.IsZero() {
				end = m.Until
			}
			fmt.Fprintf(&paused, "M%.1f 1h%.1fv%dh-%.1fz", at, max(x(end)-at, 1.5), stripAbove-2,
				max(x(end)-at, 1.5))
		case m.Kind == "reclaimed":
			fmt.Fprintf(&lost, "M%.1f 0v%d", at, stripAbove)
		case m.Kind == "version":
			fmt.Fprintf(&deploys, "M%.1f 0v%d", at, stripHeight)
		default:
			fmt.Fprintf(&other, "M%.1f 0v%d", at, stripAbove)
		}
	}
	v.Failed, v.Paused, v.Lost, v.Deploys, v.Other = failed.String(), paused.String(), lost.String(),
		deploys.String(), other.String()
}

// addCounts adds to the navigation how many there are of what its pages are about.
func (f *Frame) addCounts(figures view.Figures, v view.Verification) {
	var jobs, silent int64
	for _, q := range figures.Queues {
		for _, n := range q.Jobs {
			jobs += n
		}
	}
	for _, w := range figures.Workers {
		if w.State == status.Silent {
			silent++
		}
	}
	late := int64(0)
	for _, p := range figures.Problems {
		if p.Code == verdict.Schedule {
			late++
		}
	}
	for _, g := range f.Nav {
		for i := range g.Links {
			n := &g.Links[i]
			path, _, _ := strings.Cut(n.Href, "?")
			switch path {
			case "/jobs":
				n.Count = fmt.Sprint(jobs)
			case "/failures":
				n.Bad = counted(figures.Codes.Attempts)
			case "/queues":
				n.Count = fmt.Sprint(len(figures.Setup.Names))
			case "/schedules":
				n.Count, n.Bad = fmt.Sprint(figures.Schedules), counted(late)
			case "/workers":
				if n.Count = fmt.Sprint(len(figures.Workers)); silent > 0 {
					n.Bad, n.Count = fmt.Sprint(silent), "/ "+n.Count
				}
			case "/integrity":
				if n.Bad = counted(int64(len(v.Findings))); n.Bad == "" && v.Err == nil && !v.At.IsZero() {
					n.Count = "✓"
				}
			}
		}
	}
}

// counted is n as a text, "" for 0.
func counted(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

const (
	themeCookie = "jobledger-theme"
	stripCookie = "jobledger-strip"
)

// themes are what a reader can choose; Auto is that of the system.
var themes = []string{"light", "dark", "auto"}

// chosenIn is what the cookie called name says, as far as it is short and plain.
func chosenIn(r *http.Request, name string) string {
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(cookie.Value, "_", " ")
}

// themeOf is the theme that the reader of r chose; "": that of the system.
func themeOf(r *http.Request) string {
	if theme := chosenIn(r, themeCookie); theme == "light" || theme == "dark" {
		return theme
	}
	return ""
}

// Themes are the themes to choose from.
func (f Frame) Themes() (all []Choice) {
	for _, name := range themes {
		all = append(all, Choice{name, name == f.Theme || name == "auto" && f.Theme == ""})
	}
	return all
}

// setLook keeps the theme or the time of the strip that a form names in a cookie, and returns to the page
// from which it came.
func (p *Site) setLook(w http.ResponseWriter, r *http.Request) error {
	given, err := Form(r)
	if err != nil {
		return err
	}
	var spans []string
	for _, s := range stripSpans {
		spans = append(spans, s.Name)
	}
	for _, c := range []struct {
		param, cookie string
		values        []string
	}{{"theme", themeCookie, themes}, {"strip", stripCookie, spans}} {
		value := given.Get(c.param)
		if !given.Has(c.param) {
			continue
		}
		if !slices.Contains(c.values, value) {
			return door.BadInput(c.param, c.param+" is one of "+strings.Join(c.values, ", "))
		}
		http.SetCookie(w, &http.Cookie{ // #nosec G124 -- a look is not a secret, with TLS or without
			Name: c.cookie, Value: strings.ReplaceAll(value, " ", "_"), Path: p.Door.Prefix.At("/"), HttpOnly: true,
			SameSite: http.SameSiteLaxMode, MaxAge: int(zoneLife.Seconds())})
	}
	p.Door.SeeOther(w, r, backOf(given.Get("back")))
	return nil
}
