package main

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	timeElement = regexp.MustCompile(`<time datetime="([^"]*)" title="([^"]*)"(?: data-age)?>([^<]*)</time>`)
	wholeTime   = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+[+-][0-9]{2}:[0-9]{2}`)
	untimedText = regexp.MustCompile(`(?s)<(head|svg|code|pre|time)[ >].*?</(head|svg|code|pre|time)>|<[^>]*>`)
)

// Each time on a page that has a date is local, with its offset, in an element that has the same moment in
// UTC; so are the times of the day in lists of what happened.
func TestPagesMarkTimes(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	zone := time.FixedZone("", 90*60)
	_, get := serveOn(t, s.Store, func() time.Time { return morning.In(zone) })
	const window = "from=2026-03-15T00:00:00Z&to=2026-03-15T03:00:00Z"
	for path, least := range map[string]int{"/": 1, "/?at=pos:2159": 1, "/jobs/01KKQGAZ43CWGCX9CD0BRFPDB6": 8,
		"/events?last=30": 31, "/tail": 100, "/workers": 1, "/failures?" + window: 1, "/incident?" + window: 20,
		"/queues/mail?" + window: 3, "/lanes?" + window: 100, "/integrity": 1, "/jobs?queue=mail": 1} {
		status, _, page := get(path)
		found := timeElement.FindAllStringSubmatch(page, -1)
		if status != 200 || len(found) < least || len(found) != strings.Count(page, "<time") {
			t.Errorf("%s: %d, %d of %d times are marked, want at least %d", path, status, len(found),
				strings.Count(page, "<time"), least)
		}
		for _, f := range found {
			utc, err := time.Parse(time.RFC3339Nano, f[1])
			if err != nil || f[1] != f[2] || !strings.HasSuffix(f[1], "Z") {
				t.Fatalf("%s: %s", path, f[0])
			}
			shown := html.UnescapeString(f[3])
			layout := "2006-01-02 15:04:05-07:00"
			if !strings.Contains(shown, "+") {
				layout = "15:04:05"
			} else if !strings.HasSuffix(shown, "+01:30") {
				t.Errorf("%s: %s is not local", path, shown)
			}
			local := utc.In(zone)
			first, _, _ := strings.Cut(shown, "–")
			if at, err := time.Parse(layout, first); err != nil || at.Format("15:04:05") != local.Format("15:04:05") ||
				layout != "15:04:05" && !at.Truncate(time.Millisecond).Equal(local.Truncate(time.Millisecond)) &&
					!at.Equal(local.Truncate(time.Second)) {
				t.Errorf("%s: %s is shown as %s", path, f[1], shown)
			}
		}
		if left := wholeTime.FindString(html.UnescapeString(untimedText.ReplaceAllString(page, " "))); left != "" {
			t.Errorf("%s: %s is not marked", path, left)
		}
	}
}
