package main

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/commands"
)

// The page of jobs has a tab for each state, with how many jobs are behind it, and each part of its filter
// leads to the page without that part.
func TestJobsTabsAndChips(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	for range 3 {
		s.enqueue(commands.Enqueue{Queue: "mail", Tags: map[string]string{"team": "x"}})
	}
	s.failing("sms", map[string][]string{"a": {"7 gateway refused"}, "b": {"ok"}})
	_, get := serveOn(t, s.Store, func() time.Time { return s.Now })
	tab := regexp.MustCompile(`<a href="([^"]*)" class="button( now)?"[^>]*>(\w+)` +
		`(?: <span class="count">(\d+)</span>)?</a>`)
	tabs := func(path string) (texts string, links map[string]string) {
		t.Helper()
		_, _, page := get(path)
		links = make(map[string]string)
		for _, m := range tab.FindAllStringSubmatch(page, -1) {
			texts += m[3] + m[2] + " " + m[4] + ";"
			links[m[3]] = html.UnescapeString(m[1])
		}
		return texts, links
	}
	const none = "all now ;queued ;claimed ;running ;succeeded ;failed ;cancelled ;blocked ;"
	for path, want := range map[string]string{
		"/jobs?queue=sms&find=exit:7": none, "/jobs?at=pos:2": none,
		"/jobs": "all now 5;queued 3;claimed 0;running 0;succeeded 1;failed 1;cancelled 0;blocked 0;",
		"/jobs?queue=sms&state=failed": "all 2;queued 0;claimed 0;running 0;succeeded 1;failed now 1;" +
			"cancelled 0;blocked 0;",
	} {
		if got, _ := tabs(path); got != want {
			t.Errorf("the tabs of %s: %s\nwant %s", path, got, want)
		}
	}
	_, links := tabs("/jobs?queue=mail&state=failed&tag=team%3Dx")
	if want := "/jobs?queue=mail&state=queued&tag=team%3Dx"; links["queued"] != want {
		t.Errorf("the tab of queued jobs leads to %s, want %s", links["queued"], want)
	}
	if _, _, page := get(links["queued"]); !strings.Contains(page, "<p>3 jobs") {
		t.Errorf("the tab of queued jobs leads to\n%s", page)
	}
	const search = `gateway "two words" -key:"x y" exit:7 "queue:mail"`
	_, _, page := get("/jobs?" + url.Values{"queue": {"sms", "mail"}, "find": {search}, "from": {"pos:1"},
		"by": {"enqueued"}}.Encode())
	got := make(map[string]string)
	chip := regexp.MustCompile(`<a href="([^"]*)" class="button">([^<]*) <span class="unseen">, remove it`)
	for _, m := range chip.FindAllStringSubmatch(page, -1) {
		link, err := url.Parse(html.UnescapeString(m[1]))
		check(t, err)
		q := link.Query()
		got[html.UnescapeString(m[2])] = strings.Join(q["queue"], " ") + "|" + q.Get("find") + "|" +
			q.Get("from") + q.Get("by")
	}
	for text, want := range map[string]string{
		"queue: sms":   "mail|" + search + "|pos:1enqueued",
		"queue: mail":  "sms|" + search + "|pos:1enqueued",
		"gateway":      `sms mail|"two words" -key:"x y" exit:7 "queue:mail"|pos:1enqueued`,
		`"two words"`:  `sms mail|gateway -key:"x y" exit:7 "queue:mail"|pos:1enqueued`,
		`-key:"x y"`:   `sms mail|gateway "two words" exit:7 "queue:mail"|pos:1enqueued`,
		"exit:7":       `sms mail|gateway "two words" -key:"x y" "queue:mail"|pos:1enqueued`,
		`"queue:mail"`: `sms mail|gateway "two words" -key:"x y" exit:7|pos:1enqueued`,
		"from: pos:1":  "sms mail|" + search + "|",
		"by: enqueued": "sms mail|" + search + "|pos:1",
	} {
		if got[text] != want {
			t.Errorf("without %s the page asks for %s, want %s", text, got[text], want)
		}
	}
	s.Verify()
}

// The text of the terms of a search is read as the same terms.
func FuzzTermsText(f *testing.F) {
	for _, text := range []string{`a -b key:c -"d e" tag:x=y:z "f:g" "-h"`, `key:"i:j" state:failed --k`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		terms, err := find.Terms(text)
		if err != nil {
			return
		}
		var texts []string
		for _, term := range terms {
			texts = append(texts, term.String())
		}
		again, err := find.Terms(strings.Join(texts, " "))
		if err != nil || len(again) != len(terms) {
			t.Fatalf("%q is written as %q, which is %v, %v", text, texts, again, err)
		}
		for i, term := range terms {
			if again[i] != term {
				t.Errorf("%q is written as %q", term, texts[i])
			}
		}
	})
}
