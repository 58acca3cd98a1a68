package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web"
	"jobledger/commands"
	"jobledger/commands/cron"
	"jobledger/testdata/oracletest"
)

// askedLedger is a ledger that is asked: the recorded one, or a copy of it.
type askedLedger struct {
	t       *testing.T
	name    string // ledger, replay, import or archive
	service *commands.Service
	now     time.Time
	archive string // the folder of its archive; "": there is none
	truth   *oracletest.Ledger
	wants   map[string][]oracletest.Row // what truth has answered, by question
	get     func(path string, header ...string) (status int, head http.Header, body string)
	found   *differences
}

// newAsked serves the ledger of a scenario.
func newAsked(t *testing.T, name string, s *scenario, archive string, truth *oracletest.Ledger,
	found *differences) *askedLedger {
	t.Helper()
	now := s.Now
	serving := serveFrom(t, s.Store, archive, func() time.Time { return now }, func(c *web.Config) {
		c.CheckAt = cron.Schedule{}
	})
	return &askedLedger{t: t, name: name, service: s.Service, now: now, archive: archive, truth: truth,
		wants: make(map[string][]oracletest.Row), get: getter(t, serving), found: found}
}

// want is what the oracle answers to q. It reads all events for that, so it is asked once for all ledgers
// that have the same ones.
func (a *askedLedger) want(q question) []oracletest.Row {
	key := strings.Join(append([]string{q.name, q.path}, q.words...), " ")
	if key == q.name+" " { // a second question with this name would have the same key
		return q.want(a.truth)
	}
	rows, known := a.wants[key]
	if !known {
		rows = q.want(a.truth)
		a.wants[key] = rows
	}
	return rows
}

// run runs a command on the ledger in this process.
func (a *askedLedger) run(words ...string) (code int, stdout, stderr string) {
	var out, messages bytes.Buffer
	p := &program{&cli.Program{Stdout: bufio.NewWriter(&out), Stderr: &messages,
		Now: func() time.Time { return a.now }}}
	if a.archive == "" {
		p.Opened = a.service.Store // to open it for each question would take longer than the answer
	} else {
		words = append(words, "--archive", a.archive)
	}
	code = p.run(context.Background(), append(words, "--db", a.service.Store.DSN()))
	return code, out.String(), messages.String()
}

// question is a question that is asked of a ledger in several ways.
type question struct {
	name  string
	words []string // the command, without --json; nil: there is none
	path  string   // of the API, with its query; "": there is none
	items string   // where the answer of the API has the rows; "": a row a line, or it is one
	paged bool     // the API has it on several pages
	want  func(*oracletest.Ledger) []oracletest.Row

	keeps func(l *oracletest.Ledger, r oracletest.Row) bool // the rows that are compared; nil: all

	goes func(context.Context, *commands.Service) (rows any, err error) // Go; nil: there is none
}

// ask compares the answers to q with that of the oracle.
func (a *askedLedger) ask(q question) {
	a.t.Helper()
	want := plainRows(a.t, a.want(q))
	if a.name == "archive" { // what has become of jobs that have left is another question
		for _, r := range want {
			delete(r, "now")
		}
	}
	others := func(r oracletest.Row) bool { return q.keeps != nil && !q.keeps(a.truth, r) }
	want = slices.DeleteFunc(want, others)
	compare := func(surface, asked string, got []oracletest.Row, problem string) {
		got = slices.DeleteFunc(got, others)
		a.compare(q.name, surface, asked, got, want, problem)
	}
	if q.words != nil {
		code, out, messages := a.run(append(slices.Clone(q.words), "--json")...)
		problem := ""
		if code != cli.ExitOK && (code != cli.ExitNothing || out == "" && len(want) > 0) &&
			(code != cli.ExitNoJob || len(want) > 0) {
			problem = fmt.Sprintf("exit %d: %s", code, messages)
		}
		compare("command", strings.Join(q.words, " "), rowsIn(a.t, out), problem)
	}
	if q.path != "" {
		got, problem := a.fetch(q)
		compare("api", q.path, got, problem)
	}
	if q.goes != nil {
		got, err := q.goes(a.t.Context(), a.service)
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		compare("go", q.name, plainRows(a.t, got), problem)
	}
}

// compare notes where an answer is not what the oracle wants; problem says that there is none.
func (a *askedLedger) compare(question, surface, asked string, got, want []oracletest.Row, problem string) {
	a.t.Helper()
	if surface == "go" { // it is asked for separately
		for _, r := range want {
			delete(r, "exit_code")
			delete(r, "signal")
		}
	}
	a.found.Lock()
	a.found.asked++
	a.found.Unlock()
	if text := cmp.Or(problem, difference(got, plainRows(a.t, want))); text != "" {
		a.found.add(question, surface, a.name, fmt.Sprintf("%s, of %s: %s", asked, a.t.Name(), text))
	}
}

var samplePattern = regexp.MustCompile(`(?m)^jobledger_(\w+){([^}]*)} (\S+)$`)

// metrics are the metrics of each queue, as the oracle has them.
func (a *askedLedger) metrics() (rows []oracletest.Row) {
	a.t.Helper()
	status, _, text := a.get("/metrics")
	if status != http.StatusOK {
		a.t.Fatalf("/metrics: status %d: %s", status, text)
	}
	queues := make(map[string]oracletest.Row)
	for _, sample := range samplePattern.FindAllStringSubmatch(text, -1) {
		labels := make(map[string]string)
		for _, label := range strings.Split(sample[2], ",") {
			name, value, _ := strings.Cut(label, "=")
			labels[name] = strings.Trim(value, `"`)
		}
		value, err := strconv.ParseFloat(sample[3], 64)
		check(a.t, err)
		queue := labels["queue"]
		if queues[queue] == nil {
			queues[queue] = oracletest.Row{"queue": queue, "outcomes": map[string]any{}, "codes": map[string]any{}}
		}
		switch sample[1] {
		case "job_wait_seconds_sum":
			queues[queue]["waited"] = value
		case "job_wait_seconds_count":
			queues[queue]["waits"] = value
		case "attempts_total":
			queues[queue]["outcomes"].(map[string]any)[labels["outcome"]] = value
		case "failures_total":
			queues[queue]["codes"].(map[string]any)[labels["code"]] = value
		}
	}
	for _, queue := range slices.Sorted(maps.Keys(queues)) {
		if _, ok := queues[queue]["waits"]; ok {
			rows = append(rows, queues[queue])
		}
	}
	return rows
}

// fetch gets all pages of an answer.
func (a *askedLedger) fetch(q question) (rows []oracletest.Row, problem string) {
	address := "/api/v1" + q.path
	for address != "" {
		var header []string
		if q.items == "" {
			header = []string{"Accept", "application/x-ndjson, application/json"}
		}
		status, head, body := a.get(address, header...)
		switch {
		case status == http.StatusNotFound && strings.Contains(body, `"nothing"`):
			return rows, ""
		case status != http.StatusOK:
			return rows, fmt.Sprintf("status %d: %s", status, body)
		}
		found := rowsIn(a.t, body)
		if q.items != "" {
			var list []oracletest.Row
			items, _ := found[0][q.items].([]any)
			for _, item := range items {
				list = append(list, oracletest.Row(item.(map[string]any)))
			}
			found = list
		}
		rows = append(rows, found...)
		next, _, _ := strings.Cut(strings.TrimPrefix(head.Get("Link"), "<"), ">")
		if address = next; !q.paged {
			address = ""
		}
	}
	return rows, ""
}
