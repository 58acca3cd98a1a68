package frame

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
)

// shownTime is a time with its date and offset, in the text of HTML, where + is an entity.
var shownTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?` +
		`(\+|&#43;|-)[0-9]{2}:[0-9]{2}`)
})

// Retimed is text that this program made, with its times in zone: it may have been made for another page.
func Retimed(text string, zone *time.Location) string {
	return shownTime().ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse("2006-01-02 15:04:05-07:00", found)
		if err != nil {
			return found
		}
		return words.Time(at.In(zone))
	})
}

// untimed are the elements in which times are not text of the page, or are marked already.
var untimed = map[string]bool{"head": true, "svg": true, "code": true, "pre": true, "option": true,
	"textarea": true, "time": true, "script": true}

// timed puts each time that page shows, a whole document, into an element time. It has the same moment in
// UTC, for programs and, where a pointer rests on it, for people.
func timed(page []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(page) + len(page)/8)
	for len(page) > 0 {
		begin := bytes.IndexByte(page, '<')
		if begin < 0 {
			begin = len(page)
		}
		out.Write(markTimes(page[:begin]))
		page = page[begin:]
		end := bytes.IndexByte(page, '>') + 1 // an attribute has it as an entity
		if end == 0 {
			end = len(page)
		}
		name, _, _ := strings.Cut(strings.Trim(string(page[:end]), "<>"), " ")
		if untimed[name] {
			if close := bytes.Index(page, []byte("</"+name+">")); close > 0 {
				end = close
			}
		}
		out.Write(page[:end])
		page = page[end:]
	}
	return out.Bytes()
}

// markTimes returns text, which is HTML, with a time element around each time in it.
func markTimes(text []byte) []byte {
	if len(text) < len("2006-01-02 15:04:05-07:00") {
		return text
	}
	return shownTime().ReplaceAllFunc(text, func(found []byte) []byte {
		at, err := time.Parse("2006-01-02 15:04:05-07:00", strings.Replace(string(found), "&#43;", "+", 1))
		if err != nil {
			return found
		}
		utc := Stamp(at)
		return []byte(`<time datetime="` + utc + `" title="` + utc + `">` + string(found) + `</time>`)
	})
}

const (
	zoneParam  = "tz"
	zoneCookie = "jobledger-tz"
	zoneLife   = 365 * 24 * time.Hour
)

//go:embed zones.txt
var zoneText string

// zoneNames are the zones that a page proposes: one for each region of a country, and UTC.
var zoneNames = sync.OnceValue(func() []string { return strings.Fields(zoneText) })

// zonePattern matches the name of a zone. Local and the empty name mean others on each machine.
var zonePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)
})

// ReadZone returns the zone that is called name: one of the IANA database, not Local.
func ReadZone(name string) (*time.Location, error) {
	if zonePattern().MatchString(name) && name != "Local" {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	p := door.BadInput(zoneParam, fmt.Sprintf(
		"%.40q is not the name of a time zone, such as Europe/Berlin or UTC", name))
	if near := nearZones(name); len(near) > 0 {
		p.Hint = new("did you mean " + strings.Join(near, ", ") + "?")
	}
	return nil, p
}

// nearZones are the names of zones that are like name.
func nearZones(name string) (near []string) {
	place := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	for _, zone := range zoneNames() {
		if len(place) > 2 && strings.Contains(strings.ToLower(zone), place) {
			near = append(near, zone)
		}
	}
	if best := fault.Nearest(name, zoneNames()); best != "" && !slices.Contains(near, best) {
		near = append(near, best)
	}
	return near[:min(len(near), 5)]
}

// zoneView is the zone of a page.
type zoneView struct {
	Name   string // as a browser knows it: Europe/Berlin, or an offset
	Label  string // for people: Europe/Berlin, UTC+01:00
	Short  string // the same in few letters: Berlin +01:00
	Back   string // the address of the page
	Change string // the address at which another one is chosen
	Given  string // by the address of the page; "": it does not say
}

// inZone returns the pages for r, with times in the zone that its parameter tz names, or else its cookie; and
// r without that parameter, which no page needs to know.
func (p *Site) inZone(r *http.Request) (*Site, *http.Request, error) {
	q := *p
	zone := p.API.Now().Location()
	if cookie, err := r.Cookie(zoneCookie); err == nil {
		if name, err := url.QueryUnescape(cookie.Value); err == nil {
			if chosen, err := ReadZone(name); err == nil {
				zone = chosen
			}
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil && query.Has(zoneParam) {
		q.tz = query.Get(zoneParam)
		given, zoneErr := ReadZone(q.tz)
		if len(query[zoneParam]) > 1 {
			zoneErr = door.BadInput(zoneParam, "tz is given too often")
		}
		if err = zoneErr; err == nil {
			zone = given
		}
		query.Del(zoneParam)
		address := *r.URL
		address.RawQuery = query.Encode()
		r = r.WithContext(r.Context())
		r.URL = &address
	} else {
		err = nil // the page says what is wrong with the query
	}
	q.Now = func() time.Time { return p.API.Now().In(zone) }
	return &q, r.WithContext(door.InZone(r.Context(), zone)), err
}

// zoneOf is the zone of the pages, at a moment, for the page at the address of r.
func (p *Site) zoneOf(r *http.Request, at time.Time) zoneView {
	v := zoneView{Name: when.ZoneName(p.Now().Location()), Given: p.tz}
	offset := at.In(p.Now().Location()).Format("-07:00")
	switch {
	case !zonePattern().MatchString(v.Name):
		v.Name, v.Label = offset, "UTC"+offset
		v.Short = v.Label
	case v.Name == "UTC", v.Name == "Etc/UTC":
		v.Label, v.Short = "UTC", "UTC"
	default:
		v.Label = v.Name + ", UTC" + offset
		v.Short = strings.ReplaceAll(v.Name[strings.LastIndexByte(v.Name, '/')+1:], "_", " ") + " " + offset
	}
	back := r.URL.Path
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		back = "/"
	} else if r.URL.RawQuery != "" {
		back += "?" + r.URL.RawQuery
	}
	v.Back, v.Change = back, "/zone?"+url.Values{"back": {back}}.Encode()
	return v
}

// zonePage is the page on which a zone is chosen.
type zonePage struct {
	Frame
	Back    string // the page to return to
	Server  string // the server's zone
	Names   []string
	Current string
}

// maxBack is how long an address to return to may be.
const maxBack = 2000

// backOf is text if it is the address of a page of this server, else "/".
func backOf(text string) string {
	address, err := url.Parse(text)
	if err != nil || len(text) > maxBack || address.Host != "" || address.Scheme != "" || address.Opaque != "" ||
		!strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") ||
		strings.HasPrefix(address.Path, "//") {
		return "/"
	}
	return text
}

// zonePage shows the form for another zone.
func (p *Site) zonePage(w http.ResponseWriter, r *http.Request) error {
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	shown := zonePage{Frame: p.EmptyFrame(r, "Time zone"), Back: backOf(query.Get("back")), Names: zoneNames()}
	shown.Current = shown.Zone.Name
	server := *p
	server.Now = p.API.Now
	shown.Server = server.zoneOf(r, p.Now()).Label
	return p.Render(w, "zone", shown)
}

// setZone keeps the zone that a form names in a cookie, and returns to the page from which it came. An empty
// name is the server's zone.
func (p *Site) setZone(w http.ResponseWriter, r *http.Request) error {
	given, err := Form(r)
	if err != nil {
		return err
	}
	cookie := &http.Cookie{ // #nosec G124 -- the name of a zone is not a secret, with TLS or without
		Name: zoneCookie, Path: p.Door.Prefix.At("/"), HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: -1}
	if name := strings.TrimSpace(given.Get(zoneParam)); name != "" {
		if _, err := ReadZone(name); err != nil {
			return err
		}
		cookie.Value, cookie.MaxAge = url.QueryEscape(name), int(zoneLife.Seconds())
	}
	http.SetCookie(w, cookie)
	p.Door.SeeOther(w, r, backOf(given.Get("back")))
	return nil
}
