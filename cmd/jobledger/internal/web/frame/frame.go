package frame

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/sqltext"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// Frame is what every page shows: its links, and the moment that it is about.
type Frame struct {
	Title   string
	Ledger  string
	Nav     []navGroup
	Theme   string // that the reader chose: light, dark; "": that of the system
	Path    string // of this page
	Keep    []Param
	Command string // the command line that prints the same; "": there is none
	SQL     string // a statement over the views that says the same; "": there is none
	API     string // the address of the same in the API; "": there is none
	Link    string // this page at this moment, for ever
	Direct  string // where API begins, without a proxy

	At       string    // the parameter, as it was given; "": now
	AsOf     string    // the moment, for people
	Ago      string    // of a past moment, how long
	Clock    time.Time // the moment, or now
	Clocks   *clocksView
	Pos      int64  // of the last event that had happened
	Tail     int64  // of the last event now
	Timeless bool   // it has no other moments, as the tail has none: no link leads to one
	First    string // addresses of this page at other moments; "": there is no such moment
	Back     string
	Forward  string
	Now      string
	Compare  string // the address of what has changed since a past moment; "": it is none
	Quick    []Link // to this page at other moments
	Before   string // addresses of this page at the moments before and after at which something went wrong
	After    string
	Trouble  string     // of the one before, the time of day
	Strip    *stripView // of a page about now; nil

	Marks     []markView
	MarksText string
	Here      int // of the moment, of 1000
	Zone      zoneView
	Verified  verifiedView
	Foot      footView
	Who       string // who is logged in
	Error     bool   // it is the page of an error
	Live      bool   // it is about now, and a script keeps it up to date
	LiveJob   string // only events of this job change the page; "": those of all do
	Made      string // when the page was made, for people: the time of day; "": of a page about the past
	MadeAt    string // the same in UTC
}

// Moment is what the parameter at is for links to other pages; "": they are about now. Views have other
// fields that are called At.
func (f Frame) Moment() string { return f.At }

// AtQuery is the end of an address for the moment of the page.
func (f *Frame) AtQuery() string {
	if f.At == "" {
		return ""
	}
	return "?" + url.Values{"at": {f.At}}.Encode()
}

// ScheduleAddress is the address of the page of a schedule, at the moment of the page.
func (f *Frame) ScheduleAddress(name string) string {
	return "/schedules/" + url.PathEscape(name) + f.AtQuery()
}

// WithAt is a query about the moment of the page.
func (f *Frame) WithAt(query url.Values) url.Values {
	if f.At != "" {
		query.Set("at", f.At)
	}
	return query
}

// WithMoment is a query of a script about the moment of the page, which stays the same for ever.
func (f *Frame) WithMoment(query url.Values) url.Values {
	if f.At != "" && f.Pos > 0 {
		query.Set("at", fmt.Sprintf("pos:%d", f.Pos))
	}
	return query
}

// footView is what the last line of a page says of the server and the ledger.
type footView struct {
	Silent  string // of a page about now: how many workers are; ""
	Version string // of the server
	Ledger  string // the beginning of the ledger's id; "": it has no event
}

// navGroup are pages that answer questions of one kind.
type navGroup struct {
	Name  string
	Links []navLink
}

type navLink struct {
	Name, Href string
	Count      string // of a page about now: how many there are of what the page is about; ""
	Bad        string // how many of these are not well; ""
	Current    bool
}

// Param is a parameter that a form keeps.
type Param struct{ Name, Value string }

// Moment is the moment that a page is about.
type Moment struct {
	query.Past
	at string // the parameter, as it was given; ""
}

// navigation are the pages that each page leads to.
var navigation = []navGroup{
	{"Now", []navLink{{Name: "Overview", Href: "/"}, {Name: "Jobs", Href: "/jobs"},
		{Name: "Failures", Href: "/failures"}, {Name: "Queues", Href: "/queues"},
		{Name: "Schedules", Href: "/schedules"},
		{Name: "Workers", Href: "/workers"}}},
	{"Then", []navLink{{Name: "Lanes", Href: "/lanes"}, {Name: "Events", Href: "/events"},
		{Name: "Tail", Href: "/tail"}, {Name: "Diff", Href: "/diff"}, {Name: "Incident", Href: "/incident"}}},
	{"Trust", []navLink{{Name: "Integrity", Href: "/integrity"}}},
}

// EmptyFrame is the frame of a page about no moment.
func (p *Site) EmptyFrame(r *http.Request, title string) Frame {
	f := Frame{Title: title, Ledger: path.Base(p.Name), Path: r.URL.Path, Timeless: true, Theme: themeOf(r)}
	at := r.URL.Query().Get("at")
	for _, g := range navigation {
		g.Links = slices.Clone(g.Links)
		if g.Name == "Now" && len(p.Ledgers) > 1 {
			g.Links = append([]navLink{{Name: "Ledgers", Href: "/ledgers"}}, g.Links...)
		}
		for i := range g.Links {
			n := &g.Links[i]
			n.Current = n.Href == f.Path || n.Href != "/" && strings.HasPrefix(f.Path, n.Href+"/") ||
				n.Name == "Schedules" && strings.HasPrefix(f.Path, "/new/")
			if at != "" && n.Href != "/tail" && n.Href != "/ledgers" {
				n.Href += "?" + url.Values{"at": {at}}.Encode()
			}
		}
		f.Nav = append(f.Nav, g)
	}
	f.Zone = p.zoneOf(r, p.Now())
	f.MadeAt = Stamp(p.Now())
	f.Foot.Version = buildinfo.Read().Version
	actor := door.CallerOf(r.Context()).Actor
	if _, f.Who, _ = strings.Cut(actor, ":"); f.Who == "" {
		f.Who = actor
	}
	f.Verified = verifiedText(p.Verifier.Last(), p)
	return f
}

// MomentOf reads the parameter at in the same way as --as-of. Without it, a copy as of a moment answers about
// its own moment.
func (p *Site) MomentOf(r *http.Request, params url.Values, tx *ledger.Tx) (m Moment, err error) {
	m.at = params.Get("at")
	m.Past, err = p.API.Past(r.Context(), tx, params)
	return m, err
}

// Begin reads the moment that a page is about, and its frame.
func (p *Site) Begin(f *Frame, r *http.Request, params url.Values, tx *ledger.Tx, title string) (m Moment,
	err error) {
	if m, err = p.MomentOf(r, params, tx); err == nil {
		*f, err = p.FrameAt(r, params, tx, m, title)
	}
	return m, err
}

// BeginStatus makes f the frame of a page about all queues, which is what the verb status prints, and reads
// their figures at the moment that params name. now is when those are of, in the zone of the page.
func (p *Site) BeginStatus(f *Frame, r *http.Request, params url.Values, title string) (figures view.Figures,
	now time.Time, err error) {
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := p.Begin(f, r, params, tx, title)
		if err != nil {
			return err
		}
		if now = p.Clock(m).At; m.Given {
			figures, err = view.ReadFiguresAsOf(r.Context(), tx, m.Moment)
			return err
		}
		if figures, now, err = p.Figures.Read(r.Context(), tx, now); err == nil {
			now = now.In(p.Now().Location()) // the figures may have been read for another reader
			f.Pos, f.AsOf = figures.Pos, words.Time(now)
		}
		return err
	})
	f.Live, f.API, f.SQL, f.Command = f.Ago == "", "/api/v1/status", f.CountsSQL(""), "jobledger status"
	if f.At != "" {
		f.Command += " --as-of " + Quoted(f.At)
	}
	return figures, now, err
}

// FrameAt is the frame of a page about m, which may be now.
func (p *Site) FrameAt(r *http.Request, query url.Values, tx *ledger.Tx, m Moment, title string) (Frame,
	error) {
	f := p.EmptyFrame(r, title)
	tail, err := tx.Tail(r.Context())
	if err != nil {
		return f, err
	}
	f.At, f.Pos, f.Tail, f.Clock, f.Timeless = m.at, tail, tail, p.Clock(m).At, false
	now := p.Now()
	f.AsOf, f.Made = words.Time(now), now.Format("15:04:05")
	if m.Given {
		f.Made = ""
		f.Pos, f.AsOf, f.Ago = m.Pos, words.Time(m.At.In(now.Location())), words.Age(m.At, now)
	}
	for _, name := range api.SortedNames(query) {
		for _, value := range query[name] {
			if name != "at" {
				f.Keep = append(f.Keep, Param{name, value})
			}
		}
	}
	f.Zone = p.zoneOf(r, f.Clock)
	if p.tz != "" {
		f.Keep = append(f.Keep, Param{zoneParam, p.tz})
	}
	if err := f.addLedger(r.Context(), p, tx, m); err != nil {
		return f, err
	}
	address := func(at string) string {
		q := api.Cloned(query)
		q.Set("at", at)
		if p.tz != "" {
			q.Set(zoneParam, p.tz)
		}
		return r.URL.Path + "?" + q.Encode()
	}
	if m.Given {
		f.Clocks = f.clocksAt(f.Clock, address)
	}
	atPos := func(pos int64) string { return address(fmt.Sprintf("pos:%d", pos)) }
	if f.Pos > 1 {
		f.First, f.Back = atPos(1), atPos(f.Pos-1)
	}
	if f.Pos < tail {
		f.Forward = atPos(f.Pos + 1)
	}
	f.Quick = []Link{{"One hour ago", address("-1h")}, {"One day ago", address("-24h")}}
	if m.Given && f.Pos < tail {
		f.Compare = "/diff?" + url.Values{"from": {fmt.Sprintf("pos:%d", f.Pos)}}.Encode()
	}
	if m.at != "" {
		q := api.Cloned(query)
		q.Del("at")
		if f.Now = r.URL.Path; len(q) > 0 {
			f.Now += "?" + q.Encode()
		}
	}
	if err := p.Moments.Refresh(r.Context(), tx); err != nil {
		return f, err
	}
	f.addMarks(p, query, atPos)
	if !m.Given {
		f.Strip = newStrip(p, r, tail)
	}
	f.copies(p, r, query)
	return f, nil
}

// Clock is now, or the moment of the past.
func (p *Site) Clock(m Moment) projection.Moment {
	now := p.Now()
	if m.Given {
		return projection.Moment{Pos: m.Pos, At: m.At.In(now.Location())}
	}
	return projection.Moment{At: now}
}

// CommandOf is the command line of words, which are a verb and its flags, and of its arguments, to be pasted
// into a shell. An argument that begins with a dash is not taken for a flag.
func CommandOf(words []string, args ...string) string {
	out := []string{buildinfo.ProgramName}
	for _, word := range words {
		if word != "--json" {
			out = append(out, Quoted(word))
		}
	}
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") }) {
		out = append(out, "--")
	}
	for _, arg := range args {
		out = append(out, Quoted(arg))
	}
	return strings.Join(out, " ")
}

// FlagsOf are the words of a verb and its flags that say the same as params, but for the limit.
func FlagsOf(verb string, params url.Values) []string {
	words := []string{verb}
	for _, name := range api.SortedNames(params) {
		for _, value := range params[name] {
			if name != "limit" {
				words = append(words, "--"+fault.FlagOf(name)+"="+value)
			}
		}
	}
	return words
}

// PlainLetters mean nothing to a shell, nor to a search.
const PlainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=:./,@+"

// Quoted is word, quoted so that a shell reads it as one word.
func Quoted(word string) string {
	if word != "" && strings.Trim(word, PlainLetters) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// CountsSQL counts jobs by queue and state, now or at the position of a page about the past.
func (f *Frame) CountsSQL(queue string) string {
	if f.At == "" {
		return sqltext.Counts(queue)
	}
	return sqltext.CountsAt(queue, f.Pos)
}
