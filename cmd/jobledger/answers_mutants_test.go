package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mutant is the program with one rule changed.
type mutant struct {
	rule     string
	file     string // from the top of the module
	old, now string // a part of one line of it, and with the choice of what is there in the mutant
	finds    string // the beginning of the line about what differs then, a regular expression
}

// mutants are numbered from 1 in this order.
var mutants = []mutant{
	{"a job is ready since it could be claimed", "projection/follow/ready.go",
		"r.since = max(at, r.due)", "r.since = chosen(1, at, max(at, r.due))", `report waits`},
	{"a window has both its ends", "projection/query/window.go",
		"= max(w.Pos-1, 0), time.Time{}", "= chosen(2, w.Pos, max(w.Pos-1, 0)), time.Time{}", `report `},
	{"to take over a claim is a sign of life", "ledger/event/kinds.go",
		"keepsClaim | signOfLife | process}", "keepsClaim | chosen(3, 0, signOfLife) | process}",
		`report silent`},
	{"a percentile is the nearest rank", "projection/query/percentile.go",
		"(len(sorted)*percent+99)/100-1",
		"chosen(4, len(sorted)*percent/100-1, (len(sorted)*percent+99)/100-1)",
		`(report waits|series)`},
	{"failures that differ in quoted parts are alike", "projection/internal/fingerprint/fingerprint.go",
		"`\\B'[^']*'\\B`", "chosen(5, `''`, `\\B'[^']*'\\B`)", `failures`},
	{"an act is one actor's", "projection/query/acts.go",
		"key := actKey{e.Kind(), e.Actor, event",
		`key := actKey{e.Kind(), chosen(6, "", e.Actor), event`, `acts`},
	{"a job at a moment has the events up to it", "projection/asof.go",
		"Jobs: chunk, Until: m.Pos,", "Jobs: chunk, Until: chosen(7, m.Pos-1, m.Pos),", `(status|list|workers)`},
	{"a job whose time has not come is not ready", "projection/status/queues.go",
		"j.State == event.Queued && j.RunAt.After(now):",
		"j.State == event.Queued && chosen(8, j.RunAt.Before(now), j.RunAt.After(now)):", `status`},
	{"a job is blocked by what has not ended as it is to", "projection/graph/graph.go",
		"met = on.Meets(e.To) ||", "met = chosen(9, e.To.Final(), on.Meets(e.To)) ||", `why`},
	{"a claim ends at its event, and not before", "projection/attempts/owner.go",
		"[]any{&state}, n, m.Pos)", "[]any{&state}, n, chosen(10, m.Pos-1, m.Pos))", `owner`},
	{"what is before the horizon is in the archive", "projection/asof.go",
		"m.Pos < horizon {", "m.Pos < chosen(11, 0, horizon) {", `.* \| archive`},
	{"a page begins after the one before it", "cmd/jobledger/internal/web/api/attempts.go",
		`q.next.Set("after", strconv.FormatInt(pos, 10))`,
		`q.next.Set("after", strconv.FormatInt(chosen(12, pos+1, pos), 10))`, `events \| api`},
	{"what a job was before a window is its first state there", "projection/status/diff.go",
		"if states, ok := jobs[n]; ok {", "if states, ok := jobs[n]; chosen(13, false, ok) {", `diff`},
	{"a job that failed before is being retried", "projection/status/queues.go",
		"s.Retrying = n, scheduled, retrying",
		"s.Retrying = n, scheduled, chosen(14, scheduled, retrying)", `status`},
	{"a queue whose slots are taken keeps its jobs waiting", "projection/internal/queues/course.go",
		"case c.full || c.next", "case chosen(15, false, c.full) || c.next", `report causes`},
	{"a process that has ended serves no queue", "projection/internal/queues/served.go",
		"d.workers += next.by", "d.workers += chosen(16, max(next.by, 0), next.by)", `report causes`},
}

// mutantEnv is the number of the mutant that a test is of.
const mutantEnv = "JOBLEDGER_TEST_MUTANT"

// chosenText is the function that chooses in the mutants, of which the compiler sees a copy in each package.
const chosenText = `package %s

import "os"

func chosen[T any](mutant int, now, old T) T {
	if os.Getenv("` + mutantEnv + `") == [...]string{%s}[mutant] {
		return now
	}
	return old
}
`

var packageName = regexp.MustCompile(`(?m)^package (\w+)`)

// TestAnswersCatchMutants changes one line of the program after the other, in copies that only the compiler
// sees, and TestAnswersAreThoseOfTheExport has to find each. Without -answers, it looks only whether these
// lines are there.
func TestAnswersCatchMutants(t *testing.T) {
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	check(t, err)
	numbers := `"none"`
	for i := range mutants {
		numbers += fmt.Sprintf(`, "%d"`, i+1)
	}
	replace, changed := make(map[string]string), make(map[string]string)
	for _, m := range mutants {
		file := filepath.Join(root, m.file)
		if changed[file] == "" {
			text, err := os.ReadFile(file)
			check(t, err)
			changed[file] = string(text)
		}
		if n := strings.Count(changed[file], m.old); n != 1 {
			t.Fatalf("%s has %q %d times", m.file, m.old, n)
		}
		changed[file] = strings.Replace(changed[file], m.old, m.now, 1)
	}
	if !*everyAnswer {
		t.Skip("the program is asked everything for each mutant, for some ten minutes; with -answers")
	}
	write := func(target, text string) {
		t.Helper()
		if replace[target] == "" { // the packages of several mutants have one function that chooses
			replace[target] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		}
		check(t, os.WriteFile(replace[target], []byte(text), 0o600))
	}
	for file, text := range changed {
		write(file, text)
		name := packageName.FindStringSubmatch(text)[1]
		write(filepath.Join(filepath.Dir(file), "chosen_by_mutant.go"), fmt.Sprintf(chosenText, name, numbers))
	}
	overlay, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutants.test")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	check(t, err)
	check(t, os.WriteFile(overlay, text, 0o600))
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(mutant string) (string, error) {
		c := exec.CommandContext(t.Context(), program, "-test.short", "-test.run",
			"^TestAnswersAreThoseOfTheExport$")
		c.Env = append(os.Environ(), mutantEnv+"="+mutant)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run("0"); err != nil {
		t.Fatalf("without a mutant: %v\n%s", err, out)
	}
	for i, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			out, err := run(fmt.Sprint(i + 1))
			found := regexp.MustCompile(`(?m)^ +\S+: ` + m.finds + `.*: \d+ times, first\n.*`).FindString(out)
			if err == nil || found == "" {
				t.Fatalf("it is not found: %v\n%s", err, out)
			}
			t.Logf("found: %.400s", strings.TrimSpace(found))
		})
	}
}
