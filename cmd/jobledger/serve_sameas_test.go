package main

import (
	"fmt"
	"html"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
)

// shellWords are the words of a command line as a shell reads them.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	const split = `eval "set -- $1"; printf '%s\0' "$@"`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", split, "sh", line).Output()
	check(t, err)
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

var sameAs = regexp.MustCompile(`(?s)Same as: <code>(.*?)</code>`)

// The page of jobs says how many its filter selects, exactly; a dry run says of how many the act is possible,
// and a command line that does the same: it selects the same jobs, and changes them.
func TestBulkActHasCommand(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	var ids []string
	for i := range 62 {
		ids = append(ids, string(s.enqueue(commands.Enqueue{Queue: []string{"mail", "render"}[i%2],
			Key: fmt.Sprintf("it's %d", i), Tags: map[string]string{"a b": fmt.Sprint(i % 3)}}).ID))
	}
	for i := range 8 {
		_, err := s.Cancel(t.Context(), "cli:ada", event.JobID(ids[i]), "twice")
		check(t, err)
	}
	served := serveStore(t, s.Store, noon)
	get, tail := getter(t, served), s.Tail()
	exact := func(n int) string { return fmt.Sprintf("<p>%d jobs as of pos %d (exact).</p>", n, tail) }
	for path, want := range map[string]string{"/jobs?state=queued": exact(54),
		"/jobs?queue=mail&state=queued": exact(27),
		"/jobs?find=state:cancelled":    exact(8), "/jobs?find=it": exact(62), "/jobs": "More than 50 jobs.",
		"/jobs?state=cancelled&at=pos:66": "<p>4 jobs as of pos 66 (exact).</p>"} {
		if status, _, page := get(path); status != 200 || !strings.Contains(page, want) {
			t.Errorf("%s: %d, no %q", path, status, want)
		}
	}
	post := poster(t, serveStore(t, s.Store, noon))
	form := func(verb string, pairs ...string) url.Values {
		v := url.Values{"act": {verb}, "pos": {fmt.Sprint(tail)}, "do": {"no"}, "reason": {"it's back; $HOME"}}
		for i := 0; i < len(pairs); i += 2 {
			v.Add(pairs[i], pairs[i+1])
		}
		return v
	}
	s.enqueue(commands.Enqueue{Queue: "mail"}) // after the position of the page: in no set
	for _, c := range []struct {
		form          url.Values
		possible, not int
	}{
		{form("cancel", "f_queue", "mail", "f_state", "queued"), 27, 0},
		{form("cancel", "f_queue", "mail", "f_queue", "render", "f_find", "it -state:running"), 54, 8},
		{form("cancel", "f_key", "it's 9"), 1, 0},
		{form("retry", "f_tag", "a b=1", "spread", "10m"), 3, 18},
		{form("reschedule", "f_find", `tag:"a b=2" queue:mail`), 9, 1},
		{form("retry", "which", "these", "job", ids[3], "job", ids[4]), 2, 0},
		{form("cancel", "f_from", "pos:11", "f_to", "pos:20"), 10, 0},
	} {
		status, _, page := post("/acts", c.form.Encode())
		want := fmt.Sprintf("<strong>%d</strong> can be changed now; of %d it is not possible", c.possible, c.not)
		if status != 200 || !strings.Contains(page, want) {
			t.Errorf("%v: %d, no %q in\n%s", c.form, status, want, page)
			continue
		}
		found := sameAs.FindStringSubmatch(page)
		if found == nil {
			t.Errorf("%v: there is no command", c.form)
			continue
		}
		texts := shellWords(t, html.UnescapeString(found[1]))[1:]
		if !c.form.Has("which") { // a dry run is for a filter
			code, out, text := s.run(0, append(texts, "--dry-run")...)
			if code != 0 || out != words.Count(int64(c.possible), "job")+"\n" {
				t.Errorf("%q: %d %s %s, want %d", texts, code, out, text, c.possible)
			}
		}
	}
	_, _, page := post("/acts", form("retry", "f_tag", "a b=1", "spread", "10m").Encode())
	texts := shellWords(t, html.UnescapeString(sameAs.FindStringSubmatch(page)[1]))[1:]
	if code, _, text := s.run(0, texts...); code != 0 || !strings.Contains(text, "3 jobs retried") {
		t.Errorf("%q: %d %s", texts, code, text)
	}
	if _, page, _ := s.run(0, "history", ids[1]); !strings.Contains(page, "it's back; $HOME") {
		t.Errorf("the reason of the command is another one:\n%s", page)
	}
	// Where flags would select other jobs, there is no command.
	_, _, page = post("/acts", form("cancel", "f_queue", "mail", "f_find", "queue:render").Encode())
	if strings.Contains(page, "Same as:") {
		t.Errorf("queues of two kinds have a command:\n%s", page)
	}
	commandstest.Verify(t, s.Store)
}
