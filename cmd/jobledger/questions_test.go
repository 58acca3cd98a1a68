package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// oneCommand is the command for each question that the cookbook answers with SQL, and what has to be in its
// answer. Without a check, TestReportEqualsItsSQL compares the report with the SQL.
var oneCommand = map[string]struct {
	words string
	check func(n *night, a *answer)
}{
	"What was host charlie running when it went down?": {
		"list --as-of 2026-03-15T00:17:01Z --host charlie --state claimed --state running",
		func(n *night, a *answer) {
			var jobs []string
			for _, h := range n.holds {
				if h.host == "charlie" && h.from.Before(clock("00:17:01")) && h.end.After(clock("00:17:01")) {
					jobs = append(jobs, h.job)
				}
			}
			a.jobs(n, jobs)
		}},
	"Which workers went silent without stopping, in what order, and how many jobs did they lose?": {
		words: "report silent"},
	"Which jobs were taken from a worker, when, from whom, and who got them next?": {words: "report taken"},
	"How long did a lost job wait, from the end of its lease to the next claim, p50 and p99?": {
		"report recovery", func(_ *night, a *answer) { a.line("render", " 6 ", " 30.0s ", " 1400.0s ") }},
	"Which job has killed two workers?": {words: "report poison"},
	"Was a clock wrong? (a clock that was set back makes leases seem shorter)": {
		"report clocks", func(_ *night, a *answer) { a.is("jobledger: nothing to report\n") }},
	"And by the minute: how many jobs of mail were waiting, and how many held?": {words: "report depth"},
	"How long did this job wait each time, after which event, and until when was it not ready?": {
		"report causes --job 01KKQJVTX2",
		answers["How long did this job wait in all, and for what?"]},
	"What was enqueued between 01:00 and 04:01, and had not ended an hour later?": {words: "report backlog"},
	"How often did each error code occur, in how many jobs, from when to when?":   {words: "report failures"},
	"Which attempts lasted longest?":                                              {words: "report longest"},
	"Who cancelled, retried, paused or erased, from where (user@host), how many and why?": {
		"report acts --csv", func(n *night, a *answer) {
			paused := n.kind("queue_paused")[0]
			a.line(fmt.Sprintf("%d,%s,%s,queue_paused,mail,1,", paused.Pos, stamp(paused.At), paused.Actor),
				paused.Data.Reason)
			a.line("cli:ada@desk,retried,,54,gave up while smtp.example.net was down")
			counts := 0
			for _, line := range a.with("cli:ada@desk") {
				fields := strings.Split(line, ",")
				count := 0
				_, err := fmt.Sscan(fields[5], &count)
				check(a.t, err)
				counts += count
			}
			did := n.which(func(d deed) bool { return d.Actor == "cli:ada@desk" && d.Kind != "enqueued" })
			if counts != len(did) {
				a.t.Errorf("%d events in acts, want %d", counts, len(did))
			}
		}},
	"Did customer 17's mail run on Sunday? (by its tag)": {
		"list -q mail --tag customer=17 --by finished --from 2026-03-15T00:00Z --to 2026-03-15T23:59Z --limit 0",
		answers["Did customer 17's mail run on Sunday? (by its tag)"]},
}

// TestEachQuestionHasOneCommand looks that no question of the cookbook needs SQL: each has a command, whose
// answer is what follows from the lines of the export.
func TestEachQuestionHasOneCommand(t *testing.T) {
	history, err := filepath.Abs("../../testdata/history/bad-night.jsonl")
	check(t, err)
	recipes, n := cookbook(t), readNight(t, history)
	importWhereAsked(t, history)
	needed := 0
	for _, r := range recipes {
		if r.words[0] == "jobledger" {
			continue
		}
		needed++
		command, ok := oneCommand[r.ask]
		if !ok {
			t.Errorf("%s: no command", r.ask)
			continue
		}
		words := strings.Fields(command.words)
		if command.check == nil {
			if !slices.ContainsFunc(reportRecipes, func(x reportRecipe) bool {
				return x.ask == r.ask && strings.HasPrefix(x.report, words[1])
			}) {
				t.Errorf("%s: %s is not compared with its SQL", r.ask, command.words)
			}
			continue
		}
		code, out, messages := runInTheMorning(words...)
		if code != 0 && code != cli.ExitNothing {
			t.Fatalf("%s: exit %d: %s", command.words, code, messages)
		}
		command.check(n, &answer{t: t, out: out + messages})
	}
	if needed != len(oneCommand) {
		t.Errorf("%d questions with SQL, and %d commands", needed, len(oneCommand))
	}
}
