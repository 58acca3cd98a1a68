package main

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"jobledger/ledger/ledgertest"
)

// timesIn reports what of the times of a page is not in zone, and how many there are.
func timesIn(t *testing.T, path, page string, zone *time.Location) (n int) {
	t.Helper()
	for _, f := range timeElement.FindAllStringSubmatch(page, -1) {
		at, err := time.Parse(time.RFC3339Nano, f[1])
		check(t, err)
		shown, _, _ := strings.Cut(html.UnescapeString(f[3]), "–")
		local := at.In(zone)
		ok := false
		for _, layout := range []string{"2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05.000-07:00", "15:04:05",
			"01-02 15:04:05", "2006-01-02 15:04:05"} {
			ok = ok || local.Format(layout) == shown
		}
		if n++; !ok {
			t.Errorf("%s: %s is shown as %s, want it in %s", path, f[1], shown, zone)
		}
	}
	return n
}

// A page is in one zone: that of its address, or else of the reader, or else of the server. It says which.
func TestOneZoneEverywhere(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	served := serveStore(t, s.Store, atMorning)
	get := getter(t, served)
	const window = "from=2026-03-15T00:00:00Z&to=2026-03-15T03:00:00Z"
	paths := []string{"/", "/?at=pos:2159", "/jobs/01KKQGAZ43CWGCX9CD0BRFPDB6", "/events?last=30", "/tail",
		"/workers", "/failures?" + window, "/incident?" + window, "/queues/mail?" + window, "/lanes?" + window,
		"/integrity",
		"/jobs?queue=mail", "/diff?" + window, "/workers/alpha-render?" + window}
	zones := []string{"", "Asia/Kathmandu", "America/New_York", "Australia/Lord_Howe", "UTC"}
	for _, name := range zones[:ledgertest.Size(2, 2, len(zones))] {
		zone, err := time.LoadLocation(name)
		check(t, err)
		times := 0
		for _, path := range paths {
			address := path
			if name != "" {
				sep := "?"
				if strings.Contains(path, "?") {
					sep = "&"
				}
				address += sep + url.Values{"tz": {name}}.Encode()
			}
			byLink, _, page := get(address)
			byCookie, _, kept := get(path, "Cookie", "jobledger-tz="+url.QueryEscape(name))
			if byLink != 200 || byCookie != 200 {
				t.Errorf("%s: %d, with a cookie %d", address, byLink, byCookie)
			}
			times += timesIn(t, address, page, zone)
			timesIn(t, path+" with a cookie", kept, zone)
			if !strings.Contains(page, "are in the zone "+zone.String()) {
				t.Errorf("%s does not name its zone", address)
			}
		}
		if times < 300 {
			t.Errorf("%s: %d times", name, times)
		}
	}
	// The address is stronger than the cookie, and a time without a zone is one of the page.
	_, _, page := get("/?tz=Asia/Tokyo", "Cookie", "jobledger-tz=UTC")
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	check(t, err)
	timesIn(t, "/?tz=Asia/Tokyo", page, tokyo)
	_, _, page = get("/lanes?from=09:30&to=10:30&tz=Asia/Tokyo")
	if !strings.Contains(page, `name="from" value="2026-03-15T09:30:00&#43;09:00"`) {
		t.Errorf("09:30 in Tokyo is read as\n%.3000s", page)
	}
	for _, wrong := range []string{"Local", "Berlin", "../etc/passwd", "Europe/Berlin%00", "Europe/", "utc"} {
		status, _, page := get("/?tz=" + wrong)
		if status != 400 || !strings.Contains(page, "is not the name of a time zone") {
			t.Errorf("%s: %d", wrong, status)
		}
	}
	if _, _, page := get("/?tz=Berlin"); !strings.Contains(page, "did you mean Europe/Berlin?") {
		t.Errorf("Berlin is not near Europe/Berlin:\n%s", page)
	}
}

// A reader chooses a zone by a form that needs no script, and is back at the page.
func TestZoneIsChosen(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	served := serveStore(t, s.Store, atMorning)
	b := reader{t, served.base, &http.Client{Jar: loggedIn(t, served), CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}}
	_, _, page := b.do("GET", "/jobs?queue=mail", nil)
	if !strings.Contains(page, `href="/zone?back=%2Fjobs%3Fqueue%3Dmail"`) {
		t.Errorf("no link to other zones:\n%.2000s", page)
	}
	for back, want := range map[string]string{"/jobs?queue=mail": "/jobs?queue=mail", "//evil.example/": "/",
		"/\\evil.example": "/", "https://evil.example/": "/", "": "/", "/" + strings.Repeat("a", 3000): "/",
		"/%0d%0aSet-Cookie:a=b": "/%0d%0aSet-Cookie:a=b", "/a\r\nb": "/"} {
		status, to, _ := b.do("POST", "/zone", url.Values{"tz": {"Europe/Berlin"}, "back": {back}})
		if status != 303 || strings.TrimPrefix(to, served.base) != want {
			t.Errorf("back to %q: %d %s", back, status, to)
		}
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	check(t, err)
	if _, _, page = b.do("GET", "/events?last=30", nil); timesIn(t, "/events", page, berlin) < 30 {
		t.Error("the choice is not kept")
	}
	if status, _, _ := b.do("POST", "/zone", url.Values{"tz": {"Nowhere/Land"}}); status != 400 {
		t.Errorf("a zone that there is not: %d", status)
	}
	b.do("POST", "/zone", url.Values{"tz": {""}})
	if _, _, page = b.do("GET", "/events?last=30", nil); timesIn(t, "/events", page, time.UTC) < 30 {
		t.Error("the server's zone is not chosen")
	}
}
