package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/apitest"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
)

// TestConversationsOverHTTP holds the conversations of testdata/script/http, each with a ledger of its own.
// A file has requests and the answers to them, which -update rewrites. A request is a line with its method
// and its address below /api/v1, or from / on, then headers, then a body. These headers are for this test:
//
//	As: read,bodies@mail   a token with these scopes and this queue; all, if there is none; "-" for no token
//	Wait: 1m               the clock goes forward first
//	Inbox: ID              a program has asked for this job, in the queue mail; no process has moved its row
//	Show: head             the answer has no body here
//	Take: 3                of a stream, so many messages
//
// Ids that the server makes are ULID1, ULID2 and so on, in the order in which they came, also in requests.
// Each operation of the API has at least an answer that is a success, and one that is none.
func TestConversationsOverHTTP(t *testing.T) {
	files, err := filepath.Glob("../../testdata/script/http/*.txtar")
	check(t, err)
	answered := make(map[string]map[bool]bool) // by operation, whether it was a success
	ran := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ran++
			holdOne(t, file, answered)
		})
	}
	if ran < len(files) || len(files) == 0 {
		return // some were selected
	}
	for path, operations := range apitest.Read(t).Paths {
		for method := range operations {
			operation := strings.ToUpper(method) + " " + path
			if got := answered[operation]; !got[true] || !got[false] {
				t.Errorf("%s: a success: %t, a refusal: %t", operation, got[true], got[false])
			}
		}
	}
}

// conversation is one that is held.
type conversation struct {
	t       *testing.T
	store   *ledger.Store
	serving servedStore
	clock   *atomic.Int64 // microseconds
	client  *http.Client
	tokens  map[string]string
	written string // all requests: ids in them stay as they are
	ids     []string
}

// holdOne holds the conversation of a file, and notes in answered what was asked for.
func holdOne(t *testing.T, file string, answered map[string]map[bool]bool) {
	archive, err := txtar.ParseFile(file)
	check(t, err)
	s := commandstest.New(t)
	c := conversation{t: t, clock: new(atomic.Int64), tokens: make(map[string]string), client: &http.Client{
		Transport: &http.Transport{DisableCompression: true}, CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}}}
	c.clock.Store(s.Now.UnixMicro())
	now := func() time.Time { return time.UnixMicro(c.clock.Load()).UTC() }
	s.Store.Now = now
	c.store = s.Store
	c.serving = serveStore(t, s.Store, now)
	t.Cleanup(c.client.CloseIdleConnections)
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".request") {
			c.written += string(f.Data)
		}
	}
	var out txtar.Archive
	out.Comment = archive.Comment
	want := make(map[string]string)
	for _, f := range archive.Files {
		want[f.Name] = string(f.Data)
	}
	for _, f := range archive.Files {
		name, is := strings.CutSuffix(f.Name, ".request")
		if !is {
			continue
		}
		operation, status, answer := c.ask(string(f.Data))
		if answered[operation] == nil {
			answered[operation] = make(map[bool]bool)
		}
		answered[operation][status < 300] = true
		out.Files = append(out.Files, f, txtar.File{Name: name + ".answer", Data: []byte(answer)})
		if got := want[name+".answer"]; got != answer && !*update {
			t.Errorf("%s of %s: got\n%s\nwant\n%s", name, filepath.Base(file), answer, got)
		}
	}
	if *update {
		check(t, os.WriteFile(file, txtar.Format(&out), 0o600))
	}
}

// ask makes one request, and returns the operation of the API that it is one of, and the answer as files have
// it.
func (c *conversation) ask(text string) (operation string, status int, answer string) {
	c.t.Helper()
	for i, id := range slices.Backward(c.ids) { // ULID12 before ULID1
		text = strings.ReplaceAll(text, fmt.Sprintf("ULID%d", i+1), id)
	}
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	method, address, _ := strings.Cut(lines[0], " ")
	path := address
	if _, own := c.ownPath(address); !own {
		path = api.Root + address
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.serving.base+path,
		strings.NewReader(strings.TrimSuffix(body, "\n")))
	check(c.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	as, show, take := "all", "", 0
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			c.t.Fatalf("%q is not a header", line)
		}
		switch name {
		case "As":
			as = value
		case "Show":
			show = value
		case "Take":
			_, err := fmt.Sscan(value, &take)
			check(c.t, err)
		case "Wait":
			d, err := time.ParseDuration(value)
			check(c.t, err)
			c.clock.Add(d.Microseconds())
		case "Inbox":
			check(c.t, c.store.Write(c.t.Context(), func(tx *ledger.Tx) error {
				_, err := tx.Exec(`INSERT INTO inbox (id, job, at) VALUES (?, '{"queue":"mail"}', ?)`, value,
					c.clock.Load())
				return err
			}))
		case "Host":
			r.Host = value
		default:
			r.Header.Set(name, value)
		}
	}
	if as != "-" {
		r.Header.Set("Authorization", c.tokenOf(as))
	}
	got, err := c.client.Do(r)
	check(c.t, err)
	defer got.Body.Close()
	var out strings.Builder
	fmt.Fprintln(&out, got.StatusCode)
	for _, name := range []string{"Content-Type", "Content-Disposition", "ETag", "Vary", "Link", "Location",
		"Jobledger-Pos", "Jobledger-After", "Retry-After", "WWW-Authenticate", "Allow"} {
		if value := got.Header.Get(name); value != "" {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	said := ""
	if show != "head" {
		said = c.body(got.Body, take)
		out.WriteString("\n" + said)
	}
	operation = apitest.Answer(c.t, method, r.URL.Path, got.StatusCode, got.Header.Get("Content-Type"), said)
	answer = strings.TrimRight(c.normal(out.String(), operation), "\n") + "\n"
	return operation, got.StatusCode, answer
}

// ownPath reports whether address is one from / on, and not below that of the API.
func (c *conversation) ownPath(address string) (string, bool) {
	path, _, _ := strings.Cut(address, "?")
	return path, slices.Contains([]string{"/metrics", "/healthz", "/readyz"}, path)
}

// body reads an answer; of a stream, so many messages.
func (c *conversation) body(r io.Reader, take int) string {
	if take == 0 {
		text, err := io.ReadAll(r)
		check(c.t, err)
		return string(text)
	}
	var out strings.Builder
	for lines := bufio.NewScanner(r); take > 0 && lines.Scan(); {
		out.WriteString(lines.Text() + "\n")
		if lines.Text() == "" {
			take--
		}
	}
	return out.String()
}

// tokenOf returns a token for scopes, or scopes@queue, or all.
func (c *conversation) tokenOf(as string) string {
	if token := c.tokens[as]; token != "" {
		return token
	}
	words, queue, _ := strings.Cut(as, "@")
	if queue == "" {
		queue = "*"
	}
	scopes := access.Scopes
	if words != "all" {
		scopes = nil
		for word := range strings.SplitSeq(words, ",") {
			scope, err := access.ParseScope(word)
			check(c.t, err)
			scopes = append(scopes, scope)
		}
	}
	token, _, err := access.Create(c.serving.access, access.Request{Name: fmt.Sprintf("t%d", len(c.tokens)+1),
		Scopes: scopes, Queues: []string{queue}}, time.UnixMicro(c.clock.Load()))
	check(c.t, err)
	c.tokens[as] = "Bearer " + token
	return c.tokens[as]
}

var (
	idsOfServer = regexp.MustCompile(`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`)
	variables   = []struct {
		found *regexp.Regexp
		shown string
	}{
		{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "SHA256"},
		{regexp.MustCompile(`"(id|ledger)":"[0-9a-f]{32}"`), `"$1":"LEDGER"`},
		{regexp.MustCompile(`"salt":"[^"]*"`), `"salt":"SALT"`},
		{regexp.MustCompile(`ETag: W/"[0-9a-f]{24}"`), `ETag: W/"DIGEST"`},
		{regexp.MustCompile(`ETag: "(\d+)\.[0-9a-f]{16}`), `ETag: "$1.DIGEST`},
		{regexp.MustCompile(`id: (\d+)\.[0-9a-f]{8}`), "id: $1.DIGEST"},
	}
	verified = regexp.MustCompile(`"(since|until|at|running|seconds|next|doctor)":(\[.*?\]|[^,}]+)`)
	ofLedger = regexp.MustCompile(`"(engine|schema|verified|version)":("[^"]*"|\d+|\{.*?\})`)
	position = regexp.MustCompile(`Jobledger-Pos: \d+`)
)

// normal is text without what differs from run to run.
func (c *conversation) normal(text, operation string) string {
	text = idsOfServer.ReplaceAllStringFunc(text, func(id string) string {
		if strings.Contains(c.written, id) {
			return id
		}
		if !slices.Contains(c.ids, id) {
			c.ids = append(c.ids, id)
		}
		return fmt.Sprintf("ULID%d", slices.Index(c.ids, id)+1)
	})
	for _, v := range variables {
		text = v.found.ReplaceAllString(text, v.shown)
	}
	if strings.HasSuffix(operation, "/ledger") {
		text = ofLedger.ReplaceAllString(text, `"$1":…`)
	}
	if strings.Contains(operation, "/integrity") { // the server verifies meanwhile
		text = verified.ReplaceAllString(text, `"$1":…`)
		text = position.ReplaceAllString(text, "Jobledger-Pos: …")
	}
	return text
}

// The answers of the API about the bad night are to the byte what the program prints with --json.
func TestConversationsAboutBadNight(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	s.Now = morning
	serving := serveStore(t, s.Store, atMorning)
	ask := serving.asker(t, access.Read, access.Bodies)
	const job, then = "01KKQGAZ43CWGCX9CD0BRFPDB6", "2026-03-15T01:04:50Z"
	const window = "?from=2026-03-15T00:30:00Z&to=2026-03-15T01:30:00Z"
	between := []string{"--from=2026-03-15T00:30:00Z", "--to=2026-03-15T01:30:00Z"}
	commands := make(map[string]bool)
	for _, c := range []struct {
		path  string
		words []string
	}{
		{"/status", []string{"status"}},
		{"/status?at=" + then, []string{"status", "--as-of=" + then}},
		{"/queues", []string{"queues"}},
		{"/queues?at=" + then, []string{"queues", "--as-of=" + then}},
		{"/workers?all=true", []string{"workers", "--all"}},
		{"/workers?at=" + then, []string{"workers", "--as-of=" + then}},
		{"/jobs?state=failed&limit=1000", []string{"list", "--state=failed"}},
		{"/jobs?at=" + then + "&queue=mail&limit=20", []string{"list", "--as-of=" + then, "--queue=mail",
			"--limit=10000"}},
		{"/jobs/" + job, []string{"show", job}},
		{"/jobs/" + job + "?at=" + then, []string{"show", job, "--as-of=" + then}},
		{"/jobs/" + job + "/events", []string{"history", job}},
		{"/jobs/" + job + "/why", []string{"why", job}},
		{"/jobs/" + job + "/why?at=" + then, []string{"why", job, "--as-of=" + then}},
		{"/jobs/" + job + "/owner?at=" + then, []string{"owner", job, "--as-of=" + then}},
		{"/jobs/" + job + "/attempts", []string{"attempts", "--job=" + job}},
		{"/attempts" + window + "&limit=1000", append([]string{"attempts"}, between...)},
		{"/events" + window + "&kind=reclaimed&kind=refused", append([]string{"events", "--kind=reclaimed",
			"--kind=refused"}, between...)},
		{"/events?last=50", []string{"events", "--last=50"}},
		{"/events/2300", []string{"events", "--after=2299", "--limit=1"}},
		{"/diff" + window, append([]string{"diff"}, between...)},
		{"/export?bodies=true", []string{"export"}},
		{"/export" + window, append([]string{"export", "--no-bodies"}, between...)},
	} {
		commands[c.words[0]] = true
		var out bytes.Buffer
		check(t, serving.ask(t.Context(), &out, append([]string{"--json"}, c.words...)))
		want := out.String()
		if c.words[0] == "show" { // its events are a resource of their own
			want, _, _ = strings.Cut(want, "\n")
			want += "\n"
		}
		got := ""
		for next := c.path; next != ""; {
			answer := ask(next, "Accept", "application/x-ndjson")
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", next, answer.Status)
			}
			got += readAll(t, answer)
			next, _, _ = strings.Cut(strings.TrimPrefix(answer.Header.Get("Link"), "</api/v1"), ">")
		}
		if got != want {
			t.Errorf("%s:\n%.2000s\nwant, as %s prints it\n%.2000s", c.path, got, strings.Join(c.words, " "), want)
		}
	}
	if len(commands) < 12 {
		t.Errorf("the answers of %d commands were compared", len(commands))
	}
}
