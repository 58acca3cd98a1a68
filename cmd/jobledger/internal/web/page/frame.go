package page

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
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// frame is what every page shows: where it leads, and the moment that it is about.
type frame struct {
	Title   string
	Ledger  string
	Nav     []navLink
	Path    string // of this page
	Keep    []param
	Command string // the command line that prints the same; "": there is none
	SQL     string // a statement over the views that says the same; "": there is none
	API     string // the address of the same in the API; "": there is none
	Link    string // this page at this moment, for ever
	Direct  string // where API begins, without a proxy

	At      string    // the parameter, as it was given; "": now
	AsOf    string    // the moment, for people
	Ago     string    // of a past moment, how long
	clock   time.Time // the moment, or now
	Clocks  *clocksView
	Pos     int64  // of the last event that had happened
	Tail    int64  // of the last event now
	First   string // addresses of this page at other moments; "": there is no such moment
	Back    string
	Forward string
	Now     string
	Compare string // the address of what has changed since a past moment; "": it is none
	Before  string // addresses of this page at the moments before and after at which something went wrong
	After   string

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
func (f frame) Moment() string { return f.At }

// footView is what the last line of a page says of the server and the ledger.
type footView struct {
	Silent  string // of a page about now: how many workers are; ""
	Version string // of the server
	Ledger  string // the beginning of the ledger's id; "": it has no event
}

type navLink struct {
	Name, Href string
	Current    bool
}

// param is a parameter that a form keeps.
type param struct{ Name, Value string }

// moment is the moment that a page is about.
type moment struct {
	query.Past
	at string // the parameter, as it was given; ""
}

// navigation are the pages that each page leads to.
var navigation = []navLink{{Name: "Overview", Href: "/"}, {Name: "Lanes", Href: "/lanes"},
	{Name: "Jobs", Href: "/jobs"}, {Name: "Failures", Href: "/failures"}, {Name: "Workers", Href: "/workers"},
	{Name: "Diff", Href: "/diff"}, {Name: "Events", Href: "/events"}, {Name: "Tail", Href: "/tail"},
	{Name: "Incident", Href: "/incident"}, {Name: "Integrity", Href: "/integrity"}}

// emptyFrame is the frame of a page about no moment.
func (p *Pages) emptyFrame(r *http.Request, title string) frame {
	f := frame{Title: title, Ledger: path.Base(p.Name), Path: r.URL.Path, Nav: slices.Clone(navigation)}
	if len(p.Ledgers) > 1 {
		f.Nav = append([]navLink{{Name: "Ledgers", Href: "/ledgers"}}, f.Nav...)
	}
	f.Zone = p.zoneOf(r, p.Now())
	f.MadeAt = stamp(p.Now())
	at := r.URL.Query().Get("at")
	f.Foot.Version = buildinfo.Read().Version
	actor := door.CallerOf(r.Context()).Actor
	if _, f.Who, _ = strings.Cut(actor, ":"); f.Who == "" {
		f.Who = actor
	}
	f.Verified = verifiedText(p.Verifier.Last(), p)
	for i := range f.Nav {
		n := &f.Nav[i]
		n.Current = n.Href == f.Path || n.Href != "/" && strings.HasPrefix(f.Path, n.Href+"/")
		if at != "" && n.Href != "/tail" && n.Href != "/ledgers" {
			n.Href += "?" + url.Values{"at": {at}}.Encode()
		}
	}
	return f
}

// momentOf reads the parameter at, as --as-of is read. Without it, a copy as of a moment is about its own
// one.
func (p *Pages) momentOf(r *http.Request, params url.Values, tx *ledger.Tx) (m moment, err error) {
	m.at = params.Get("at")
	m.Past, err = p.API.Past(r.Context(), tx, params)
	return m, err
}

// begin reads the moment that a page is about, and its frame.
func (p *Pages) begin(f *frame, r *http.Request, params url.Values, tx *ledger.Tx, title string) (m moment,
	err error) {
	if m, err = p.momentOf(r, params, tx); err == nil {
		*f, err = p.frameAt(r, params, tx, m, title)
	}
	return m, err
}

// frameAt is the frame of a page about m, which may be now.
func (p *Pages) frameAt(r *http.Request, query url.Values, tx *ledger.Tx, m moment, title string) (frame,
	error) {
	f := p.emptyFrame(r, title)
	tail, err := tx.Tail(r.Context())
	if err != nil {
		return f, err
	}
	f.At, f.Pos, f.Tail, f.clock = m.at, tail, tail, p.clock(m).At
	now := p.Now()
	f.AsOf, f.Made = words.Time(now), now.Format("15:04:05")
	if m.Given {
		f.Made = ""
		f.Pos, f.AsOf, f.Ago = m.Pos, words.Time(m.At.In(now.Location())), words.Age(m.At, now)
	}
	for _, name := range api.SortedNames(query) {
		for _, value := range query[name] {
			if name != "at" {
				f.Keep = append(f.Keep, param{name, value})
			}
		}
	}
	f.Zone = p.zoneOf(r, f.clock)
	if p.tz != "" {
		f.Keep = append(f.Keep, param{zoneParam, p.tz})
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
		f.Clocks = f.clocksAt(f.clock, address)
	}
	atPos := func(pos int64) string { return address(fmt.Sprintf("pos:%d", pos)) }
	if f.Pos > 1 {
		f.First, f.Back = atPos(1), atPos(f.Pos-1)
	}
	if f.Pos < tail {
		f.Forward = atPos(f.Pos + 1)
	}
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
	f.copies(p, r, query)
	return f, nil
}

// clock is now, or the moment of the past.
func (p *Pages) clock(m moment) projection.Moment {
	now := p.Now()
	if m.Given {
		return projection.Moment{Pos: m.Pos, At: m.At.In(now.Location())}
	}
	return projection.Moment{At: now}
}

// commandOf is the command line of words, to be pasted into a shell.
func commandOf(words []string) string {
	out := []string{buildinfo.ProgramName}
	for _, word := range words {
		if word != "--json" {
			out = append(out, quoted(word))
		}
	}
	return strings.Join(out, " ")
}

// flagsOf are the words of a verb and its flags that say the same as params, but for the limit.
func flagsOf(verb string, params url.Values) []string {
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

// plainLetters mean nothing to a shell, nor to a search.
const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=:./,@+"

// quoted is word as a shell reads it as one.
func quoted(word string) string {
	if word != "" && strings.Trim(word, plainLetters) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// countsSQL counts jobs by queue and state, now or at the position of a page about the past.
func (f *frame) countsSQL(queue string) string {
	if f.At == "" {
		return sqltext.Counts(queue)
	}
	return sqltext.CountsAt(queue, f.Pos)
}
