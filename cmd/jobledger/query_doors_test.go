package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// questions are those of package projection/query, with the command, the route of the API and the page that
// print the answer. If one of them is missing, why says the reason.
var questions = []struct {
	name, command, route, page string
	why                        string
}{
	{"Acts", "report acts", reports, "/lanes", ""},
	{"Attempts", "attempts", "/api/v1/attempts", "/workers/bravo-render", ""},
	{"Backlog", "report backlog", reports, "", noPage},
	{"Between", "", "", "/diff",
		"the sums in the head of the page; the command and the route diff have the rows of two moments"},
	{"Causes", "report causes", reports, "", noPage},
	{"Clocks", "report clocks", reports, "", noPage},
	{"Counts", "incident", "/api/v1/incident", "", "the page shows the report as it is"},
	{"Depth", "report depth", "/api/v1/depth", "", "the page of a queue draws Series, whose depth is the same"},
	{"Failures", "report failures", "/api/v1/failures", "/failures", ""},
	{"Findings", "", "", "/lanes", "sentences for a picture; the command incident has what they are about"},
	{"Head", "", "", "/queues/mail", "the number of the next job of a queue, for a link"},
	{"History", "history", "/api/v1/jobs/{job}/events", "/jobs/{job}", ""},
	{"Jobs", "list", "/api/v1/jobs", "/jobs", ""},
	{"Lanes", "", "/api/v1/lanes", "/lanes", "a picture; the command attempts has the claims that it draws"},
	{"Left", "report left", reports, "", noPage},
	{"Longest", "report longest", reports, "", noPage},
	{"Owner", "owner", "/api/v1/jobs/{job}/owner", "/jobs/{job}", ""},
	{"Peaks", "incident", "/api/v1/incident", "", "the page shows the report as it is"},
	{"Poison", "report poison", reports, "", noPage},
	{"Problems", "status", "", "/", "the metric jobledger_problems has their number by code"},
	{"QueueMarks", "", "", "/queues/mail", "what a picture of a queue is marked with; events has it as text"},
	{"Queues", "queues", "/api/v1/queues", "", "the page of a queue has the row of that queue"},
	{"Recovery", "report recovery", reports, "", noPage},
	{"Series", "", "/api/v1/series", "/queues/mail", "numbers of a picture; report depth has them as text"},
	{"Silent", "report silent", reports, "", noPage},
	{"Taken", "report taken", reports, "", noPage},
	{"Waits", "report waits", reports, "/queues/mail", ""},
}

const (
	reports = "/api/v1/reports/{report}"
	noPage  = "people have the incident report, which links the command"
)

// TestEachQuestionHasItsDoors: a question that is added to package projection/query is printed by a command,
// a route and a page, or the list above says why not; and these print its answer, not one of their own.
func TestEachQuestionHasItsDoors(t *testing.T) {
	t.Parallel()
	s, get := serveNight(t)
	var api struct{ Paths map[string]json.RawMessage }
	check(t, json.Unmarshal([]byte(get("/api/v1/openapi.json")), &api))
	asked := askedIn(t)
	defined := definedQuestions(t)
	for _, q := range questions {
		i := slices.Index(defined, q.name)
		if i < 0 {
			t.Errorf("there is no question %s", q.name)
			continue
		}
		defined = slices.Delete(defined, i, i+1)
		doors := asked[q.name]
		within := func(folders ...string) bool {
			return slices.ContainsFunc(doors, func(file string) bool {
				return slices.ContainsFunc(folders, func(folder string) bool {
					return strings.HasPrefix(file, "internal/"+folder)
				})
			})
		}
		if q.command != "" {
			verb, report, _ := strings.Cut(q.command, " ")
			named := func(v cli.Verb) bool { return v.Name == verb }
			if !slices.ContainsFunc((&program{&cli.Program{}}).verbs(), named) {
				t.Errorf("%s: there is no command %s", q.name, verb)
			}
			if report != "" {
				if code, _, messages := s.run(0, verb, report, "--json"); code > cli.ExitNothing {
					t.Errorf("%s: %s: exit %d: %s", q.name, q.command, code, messages)
				}
			}
			outside := func(file string) bool { return !strings.HasPrefix(file, "internal/web/") }
			if !slices.ContainsFunc(doors, outside) {
				t.Errorf("%s: no command asks it", q.name)
			}
		}
		if q.route != "" && (api.Paths[q.route] == nil ||
			!within("web/api", "web/view", "find", "incident", "state", "print")) {
			t.Errorf("%s: the route %s does not exist, or does not ask it", q.name, q.route)
		}
		if q.page != "" {
			page, err := url.Parse(strings.ReplaceAll(q.page, "{job}", "01KKQGAZ43CWGCX9CD0BRFPDB6"))
			check(t, err)
			if get(page.String()) == "" || !within("web/page", "web/queues", "web/then", "web/frame",
				"web/view", "find", "state", "print") {
				t.Errorf("%s: the page %s does not exist, or does not ask it", q.name, q.page)
			}
		}
		if all := q.command != "" && q.route != "" && q.page != ""; all == (q.why != "") {
			t.Errorf("%s: a reason goes with a door that is missing, and with nothing else", q.name)
		}
	}
	for _, name := range defined {
		t.Errorf("the question %s is in no list: say which command, route and page print it", name)
	}
}

// definedQuestions are the types of package projection/query that read an answer.
func definedQuestions(t *testing.T) (names []string) {
	reads := regexp.MustCompile(`(?m)^func \(\w+ \*?([A-Z]\w*)\) (?:Read|Each)\(`)
	for file, text := range goFiles(t, "../../projection/query") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range reads.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
	}
	return names
}

// askedIn returns the files of this program that use a question, by its name.
func askedIn(t *testing.T) map[string][]string {
	uses := regexp.MustCompile(`\bquery\.([A-Z]\w*)`)
	asked := make(map[string][]string)
	for file, text := range goFiles(t, ".") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range uses.FindAllStringSubmatch(text, -1) {
			asked[m[1]] = append(asked[m[1]], filepath.ToSlash(file))
		}
	}
	return asked
}

func goFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(file string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".go") {
			text, err := os.ReadFile(file)
			files[file] = string(text)
			return err
		}
		return err
	})
	check(t, err)
	return files
}
