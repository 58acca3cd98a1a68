package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/projection"
	"jobledger/projection/keyframe"
)

// foundJobs is an answer of the resource /jobs.
type foundJobs struct {
	Items    []struct{ ID string }
	Next     *string
	Searched *struct {
		Jobs, Of *int64
		To       string
	}
}

// searchAll goes on with a search until its end. It calls between after each answer, which ends early or not.
func searchAll(t *testing.T, fetch func(string) string, path string, between func(foundJobs)) (ids []string) {
	t.Helper()
	for next := &path; next != nil; {
		var answer foundJobs
		text := fetch(*next)
		check(t, json.Unmarshal([]byte(text), &answer))
		if answer.Items == nil || answer.Searched != nil && answer.Next == nil {
			t.Fatalf("%s: %s", *next, text)
		}
		for _, j := range answer.Items {
			ids = append(ids, j.ID)
		}
		between(answer)
		next = answer.Next
	}
	return ids
}

// A search that ends by its time goes on with its cursor, and finds to its end exactly what one finds that
// takes its time, in the same order, even while jobs are enqueued. It says how many jobs it has looked at.
func TestSearchGoesOn(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	const many = 600
	jobs := make([]commands.Enqueue, many)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail", Tags: map[string]string{"n": strconv.Itoa(i % 7)}}
		if i%50 == 0 {
			jobs[i].Queue, jobs[i].Tags["order"] = "render", "needle"
			jobs[i].Payload = []byte("the needle")
		}
	}
	_, err := s.Enqueue(t.Context(), "cli:ada@build7", jobs...)
	check(t, err)
	s.claim("alpha", "mail")
	_, wholeFetch := serveOn(t, s.Store, noon)
	serving := serveWithin(t, s.Store, noon, time.Nanosecond)
	shortFetch := getter(t, serving)
	text := func(path string) string {
		t.Helper()
		status, _, body := shortFetch(path)
		if status != 200 {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		return body
	}
	for _, withKeyframes := range []bool{false, true} {
		if withKeyframes {
			if added, err := keyframe.Extend(t.Context(), s.Store, 64); err != nil || added == 0 {
				t.Fatalf("%d keyframes, %v", added, err)
			}
		}
		for _, query := range []string{"find=needle", "find=nothing-has-this", "find=-tag:n%3D3+queue:mail",
			"find=actor:cli:ada@build7+tag:order&limit=7", "tag=n%3D3&limit=1000", "state=claimed",
			"queue=render&limit=5",
			"find=needle&at=pos:333", "at=pos:333&state=queued", "find=needle&from=pos:120&to=pos:420",
			"find=needle+since:pos:120+until:pos:420", "host=build7", "find=worker:alpha",
			"find=payload:needle", ""} {
			path := "/api/v1/jobs?" + query
			want := searchAll(t, func(path string) string {
				status, _, body := wholeFetch(path)
				if status != 200 {
					t.Fatalf("%s: %d %s", path, status, body)
				}
				return body
			}, path, func(a foundJobs) {
				if a.Searched != nil {
					t.Errorf("%s ended early: %+v", path, a.Searched)
				}
			})
			early, looked := 0, int64(0)
			got := searchAll(t, text, path, func(a foundJobs) {
				if !strings.Contains(query, "at=") && query != "" {
					s.enqueue(commands.Enqueue{Queue: "render", Tags: map[string]string{"order": "needle", "n": "3"}})
				}
				if a.Searched == nil {
					return
				}
				early++
				far := *a.Searched
				if far.Jobs == nil || far.Of == nil || *far.Jobs <= looked || *far.Jobs >= *far.Of ||
					*far.Of < 300 || !strings.Contains(*a.Next, url.QueryEscape(far.To)) {
					t.Errorf("%s after %d jobs: %s", path, looked, *a.Next)
				}
				looked = *far.Jobs
			})
			if early == 0 && query != "" {
				t.Errorf("%s never ended early", path)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s (keyframes: %t): %d jobs, want %d:\n%v\n%v", path, withKeyframes, len(got), len(want), got,
					want)
			}
		}
	}
	commandstest.Verify(t, s.Store)
}

// What a search says of how far it came: exact numbers, and none of other queues.
func TestSearchSaysHowFar(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	for range 200 {
		s.enqueue(commands.Enqueue{Queue: "mail"})
	}
	needle := s.enqueue(commands.Enqueue{Queue: "mail", Key: "needle"})
	serving := serveWithin(t, s.Store, noon, time.Nanosecond)
	fetch := getter(t, serving)
	_, _, text := fetch("/api/v1/jobs?find=needle")
	if want := `"next":"/api/v1/jobs?find=needle\u0026to=pos%3A137",` +
		`"searched":{"jobs":64,"of":201,"to":"pos:137"}}`; !strings.Contains(text, want) {
		t.Errorf("the answer is %s, want %s", text, want)
	}
	token, _, err := access.Create(serving.access, access.Request{Name: "mail",
		Scopes: []access.Scope{access.Read}, Queues: []string{"mail"}}, noon())
	check(t, err)
	_, _, text = fetch("/api/v1/jobs?queue=mail&find=needle", "Authorization", "Bearer "+token)
	if want := `"searched":{"to":"pos:137"}}`; !strings.Contains(text, want) {
		t.Errorf("for a token of one queue it is %s, want %s", text, want)
	}

	link := regexp.MustCompile(`<p>(Searched the newest \d+ of \d+ jobs\.) ` +
		`<a href="([^"]*)" rel="next">Go on</a>`)
	path, pages := "/jobs?find=needle", 0
	for path != "" {
		status, _, page := fetch(path)
		if status != 200 || strings.Contains(page, string(needle.ID)) != (pages == 0) {
			t.Fatalf("%s: %d\n%s", path, status, page)
		}
		if pages == 1 && !strings.Contains(page, "<p>No job matches so far.</p>") {
			t.Errorf("%s does not say that it may go on:\n%s", path, page)
		}
		found := link.FindStringSubmatch(page)
		if path = ""; found != nil {
			if want := fmt.Sprintf("Searched the newest %d of 201 jobs.", 64*(pages+1)); found[1] != want {
				t.Errorf("page %d: %s, want %s", pages, found[1], want)
			}
			path = html.UnescapeString(found[2])
		}
		if strings.Contains(page, "search-time") {
			t.Errorf("the command of the page has the time of the server:\n%s", page)
		}
		pages++
	}
	if pages != 4 {
		t.Errorf("%d pages", pages)
	}
	commandstest.Verify(t, s.Store)
}

// Pages of a list have each job once, while jobs are added, cancelled, retried and get other priorities
// between two pages.
func TestPagesOfJobsThatChange(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	dice := rand.New(rand.NewPCG(1, 2))
	var jobs []projection.Job
	for n := range 200 {
		jobs = append(jobs, s.enqueue(commands.Enqueue{Queue: "mail", Priority: n % 3}))
	}
	tail := s.Tail()
	_, fetch := serveOn(t, s.Store, noon)
	priority := 0
	change := func(foundJobs) {
		s.enqueue(commands.Enqueue{Queue: "mail"})
		priority = dice.IntN(9)
		for _, c := range []commands.Command{commands.Cancel{}, commands.Retry{},
			commands.Reschedule{Priority: &priority}} {
			_, err := s.Apply(t.Context(), "cli:ada@build7", jobs[dice.IntN(len(jobs))].ID, c)
			if err != nil && !errors.Is(err, commands.ErrConflict) {
				t.Fatal(err)
			}
		}
	}
	for _, query := range []string{"queue=mail", "", "find=queue:mail", "from=pos:1",
		fmt.Sprint("at=pos:", tail)} {
		count := make(map[string]int)
		for _, id := range searchAll(t, func(path string) string {
			status, _, body := fetch(path)
			if status != 200 {
				t.Fatalf("%s: %d %s", path, status, body)
			}
			return body
		}, "/api/v1/jobs?limit=15&"+query, change) {
			if count[id]++; count[id] > 1 {
				t.Errorf("%q has %s %d times", query, id, count[id])
			}
		}
		for _, j := range jobs {
			if count[string(j.ID)] != 1 {
				t.Errorf("%q lacks %s", query, j.ID)
			}
		}
	}
	commandstest.Verify(t, s.Store)
}
