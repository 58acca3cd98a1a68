package web

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/apitest"
)

var (
	shownOperation = regexp.MustCompile(`(?s)<section class="operation".*?</section>`)
	shownHeading   = regexp.MustCompile(`<h3 id="([^"]+)"><code>([^<]+)</code></h3>`)
	shownScopes    = regexp.MustCompile(`<p class="scopes">(.*)</p>`)
	shownCurl      = regexp.MustCompile(`<pre class="curl" .*?>(.*)</pre>`)
	tag            = regexp.MustCompile(`<[^>]*>`)
)

// The page of the API has each operation of the document with what it needs, also for a token of another
// scope and of one queue.
func TestPageOfTheAPI(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	d := apitest.Read(t)
	limited := s.create("limited", []string{"mail"}, access.Metrics)
	answer, page := s.do("GET", "/api", nil, "Authorization", limited)
	if answer.StatusCode != http.StatusOK || strings.Contains(page, `href="/jobs"`) {
		t.Fatalf("for a token of one queue: %s\n%s", answer.Status, page)
	}
	token := s.create("all", []string{"*"}, access.Scopes...)
	if _, page = s.do("GET", "/api", nil, "Authorization", token); !strings.Contains(page, `href="/jobs"`) {
		t.Errorf("no link to the page of jobs")
	}
	var got, want []string
	ids := make(map[string]bool)
	for _, section := range shownOperation.FindAllString(page, -1) {
		heading := shownHeading.FindStringSubmatch(section)
		if ids[heading[1]] || strings.Count(page, `href="#`+heading[1]+`"`) != 1 {
			t.Errorf("%s: the anchor %s is not the one of a link", heading[2], heading[1])
		}
		ids[heading[1]] = true
		scopes := tag.ReplaceAllString(shownScopes.FindStringSubmatch(section)[1], "")
		got = append(got, heading[2]+" "+scopes)
		command := html.UnescapeString(shownCurl.FindStringSubmatch(section)[1])
		method, path, _ := strings.Cut(heading[2], " ")
		o := d.Paths[path][strings.ToLower(method)]
		for _, p := range o.Parameters {
			if p.Name != "" && !strings.Contains(section, "<code>"+p.Name+"</code>") {
				t.Errorf("%s: no parameter %s", heading[2], p.Name)
			}
		}
		for _, content := range o.RequestBody.Content {
			text, isText := content.Example.(string)
			if !isText {
				text = "{"
			}
			if content.Example == nil || !strings.Contains(html.UnescapeString(section), `<pre class="example"`) ||
				!strings.Contains(html.UnescapeString(section), text) {
				t.Errorf("%s: no example %v", heading[2], content.Example)
			}
		}
		address, _, _ := strings.Cut(path, "{")
		if !strings.Contains(command, `"`+s.base+address) || strings.Contains(command, "{job}") ||
			method != http.MethodGet && !strings.Contains(command, " -X "+method+" ") {
			t.Errorf("%s: %s", heading[2], command)
		}
	}
	for path, operations := range d.Paths {
		for method := range operations {
			pattern := strings.ToUpper(method) + " " + path
			needs := rightsOf[pattern]
			says := "It needs no credential."
			if needs.scopes != "" {
				says = "Scope: " + strings.ReplaceAll(needs.scopes, " ", " and ") + ", for all queues."
				if needs.queues != allQueues {
					says = strings.Replace(says, "for all queues", "also for some queues only", 1)
				}
			}
			want = append(want, pattern+" "+says)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the page has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var problem struct {
		Components struct {
			Schemas struct {
				Problem struct{ Properties map[string]any }
			}
		}
	}
	if err := json.Unmarshal(api.Document, &problem); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		_, page := serveOnSocket(t, func(*Config) {}).do("GET", "/api", nil)
		if !strings.Contains(html.UnescapeString(page), `>curl --unix-socket "$SOCKET" "http://`) ||
			strings.Contains(page, "-H &#34;Authorization") {
			t.Error("on a Unix socket there is no command with its path")
		}
	}
	_, errors, _ := strings.Cut(page, `<h2 id="errors">`)
	for name := range problem.Components.Schemas.Problem.Properties {
		if !strings.Contains(errors, "<code>"+name+"</code>") {
			t.Errorf("no field %s of errors", name)
		}
	}
}
