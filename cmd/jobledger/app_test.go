package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/render"
)

func TestExitCodesOfErrors(t *testing.T) {
	tests := []struct {
		err       error
		code      int
		why, hint string
	}{
		{nil, 0, "", ""},
		{errors.New("oops"), 1, "oops", ""},
		{usagef("no %s", "x"), 2, "no x", ""},
		{withHint(usagef("no x"), "say %s", "y"), 2, "no x", "say y"},
		{withHint(withHint(usagef("no x"), "first"), "second"), 2, "no x", "first"},
		{withHint(errors.New("oops"), "try"), 1, "oops", "try"},
		{withHint(nil, "try"), 0, "", ""},
		{fmt.Errorf("job 7: %w", exitf(exitConflict, "taken")), 6, "job 7: taken", ""},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), 124, "wait: context deadline exceeded", ""},
		{fmt.Errorf("print: %w", syscall.EPIPE), 0, "print: broken pipe", ""},
		{errors.Join(exitf(exitDiscrepancy, "bad"), syscall.EPIPE), 8, "bad\nbroken pipe", ""},
	}
	for _, tt := range tests {
		code, why, hint := explain(tt.err)
		if code != tt.code || why != tt.why || hint != tt.hint {
			t.Errorf("%v: got %d, %q, %q", tt.err, code, why, hint)
		}
	}
}

func TestMissingArgumentsAndFlags(t *testing.T) {
	one := verb{name: "cancel", args: "JOB…", minArgs: 1, maxArgs: anyNumber}
	none := verb{name: "status"}
	work := verb{name: "work", rest: "CMD ARGS…", flags: []cli.Flag{
		&cli.StringSliceFlag{Name: "queue", Aliases: []string{"q"}, Required: true},
		&cli.StringFlag{Name: "token", Required: true, EnvVars: []string{"TRY_TOKEN"}},
	}}
	t.Setenv("TRY_TOKEN", "x")
	tests := []struct {
		v         verb
		typed     string
		why, hint string
	}{
		{one, "cancel", "missing JOB…", "see 'jobledger cancel --help'"},
		{one, "cancel a b c", "", ""},
		{none, "status", "", ""},
		{none, "status a", `unexpected argument "a"`, "see 'jobledger status --help'"},
		{work, "work -q mail", "missing -- CMD ARGS…", ""},
		{work, "work -q mail --", "missing -- CMD ARGS…", ""},
		{work, "work -q mail sh run", "the worker's command must stand after --", "jobledger work … -- sh run"},
		{work, "work -q mail x -- sh", `unexpected argument "x"`, ""},
		{work, "work -q mail -- sh", "", ""},
		{work, "work -- sh", "missing flag --queue (-q)", "see 'jobledger work --help'"},
	}
	for _, tt := range tests {
		l, err := normalize(words(tt.typed), globalFlags(""), []verb{tt.v})
		if err != nil {
			t.Fatal(err)
		}
		if err = tt.v.missingFlag(l); err == nil {
			err = tt.v.checkArgs(l)
		}
		if _, why, hint := explain(err); why != tt.why || tt.hint != "" && hint != tt.hint {
			t.Errorf("%s: got %q, hint %q", tt.typed, why, hint)
		}
	}
}

func TestHelpLeadsWithExamples(t *testing.T) {
	p, out := printing(0, false)
	v := verb{
		name: "pause", group: groupOperate, usage: "stop handing out the jobs of a queue",
		about: "Jobs that are running go on.\nNew ones wait.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE`", Required: true},
			listFlag("tag", "only with `K=V`"),
			durationFlag("lease", "for `D`", "1m", 0, 0, false),
			wholeFlag("limit", "at most `N`", 0, 1, 10, "all"),
			&cli.StringFlag{Name: "secret", Hidden: true},
		},
		examples: []example{{"jobledger pause -q mail", "nothing is claimed from mail any more"}},
		exits:    []int{exitConflict},
	}
	p.writeVerbHelp(p.stdout, v)
	p.flush()
	want := `jobledger pause: stop handing out the jobs of a queue

EXAMPLES
  jobledger pause -q mail
      nothing is claimed from mail any more

USAGE
  jobledger pause [flags]

  Jobs that are running go on.

  New ones wait.

FLAGS
  --queue QUEUE, -q QUEUE  the QUEUE (required)
  --tag K=V …              only with K=V
  --lease D                for D (default: 1m)
  --limit N                at most N (default: all)

GLOBAL FLAGS
`
	if got := out.String(); !strings.HasPrefix(got, want) || !strings.Contains(got, "\n  6  conflict") {
		t.Errorf("got\n%s", got)
	}
}

// pauseLike is a verb as they all are written: flags into values, one call, one answer in two forms.
func pauseLike(p *program) verb {
	return verb{
		name: "pause", group: groupOperate, usage: "stop handing out the jobs of a queue",
		flags: []cli.Flag{
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE` to pause", Required: true},
			&cli.StringFlag{Name: "reason", Usage: "why, for whoever reads the history"},
			durationFlag("grace", "wait `D` first", "", 0, time.Hour, true),
			&cli.StringFlag{Name: "since", Usage: "from `TIME` on"},
		},
		examples: []example{{"jobledger pause -q mail", "nothing is claimed from mail until it is resumed"}},
		exits:    []int{exitConflict},
		run: func(c *cli.Context) error {
			since, given, err := p.whenOf(c, "since")
			if err != nil {
				return err
			}
			if !given {
				since.Time = p.now()
			}
			grace, given := durationOf(c, "grace")
			queue := c.String("queue")
			if queue == "gone" {
				return withHint(exitf(exitConflict, "queue %s is paused already", queue), "see 'jobledger status'")
			}
			if p.json {
				return p.printJSON(map[string]any{
					"queue": queue, "reason": c.String("reason"), "since": render.JSONTime(since.Time), "grace": grace.Seconds(), "given": given,
				})
			}
			t := &table{columns: []column{{title: "QUEUE", least: 8}, {title: "STATE", state: true}, {title: "SINCE"}}}
			t.add(queue, "paused", render.Age(since.Time, p.now()))
			return p.printTable(t)
		},
	}
}

func TestAVerbFromLineToAnswer(t *testing.T) {
	tests := []struct {
		typed  string
		code   int
		stdout string
		stderr string
	}{
		{"-q mail --since -2h", 0, "QUEUE  STATE   SINCE\nmail   paused  2h ago\n", ""},
		{"--json --reason -x --queue=mail --grace 0s", 0,
			`{"given":true,"grace":0,"queue":"mail","reason":"-x","since":"2026-05-04T06:15:00.000000Z"}` + "\n", ""},
		{"-q gone", 6, "", "jobledger: queue gone is paused already\nhint: see 'jobledger status'\n"},
		{"-q mail --grace 5", 2, "",
			"jobledger: --grace: \"5\" has no unit; give a duration from 0s to 1h, such as 90s or 1h30m\n"},
		{"-q mail --since 2026-05-04", 2, "",
			"jobledger: --since: \"2026-05-04\" has no time zone: add Z or an offset such as +02:00\nhint: " + whenForms + "\n"},
	}
	for _, tt := range tests {
		p, stdout := printing(0, false)
		var stderr strings.Builder
		p.stderr = &stderr
		code := p.finish(p.dispatch(t.Context(), append([]string{"pause"}, words(tt.typed)...), []verb{pauseLike(p)}))
		if code != tt.code || stdout.String() != tt.stdout || stderr.String() != tt.stderr {
			t.Errorf("%s: got exit %d\n%s%s", tt.typed, code, stdout, stderr.String())
		}
	}
}

func TestGlobalFlags(t *testing.T) {
	tests := []struct {
		line, env string
		db        string
		json      bool
	}{
		{"try", "", "jobledger.db", false},
		{"try --db x --json", "JOBLEDGER_DB=y", "x", true},
		{"--db x try --json=false", "JOBLEDGER_JSON=1", "x", false},
		{"try", "JOBLEDGER_DB=y JOBLEDGER_JSON=true", "y", true},
		{"try", "JOBLEDGER_DB= JOBLEDGER_JSON=", "jobledger.db", false},
	}
	for _, tt := range tests {
		t.Run(tt.line+" "+tt.env, func(t *testing.T) {
			for assignment := range strings.FieldsSeq(tt.env) {
				name, value, _ := strings.Cut(assignment, "=")
				t.Setenv(name, value)
			}
			p := &program{}
			verbs := []verb{{name: "try", run: func(*cli.Context) error { return nil }}}
			globals := globalFlags(p.defaultActor())
			l, err := normalize(words(tt.line), globals, verbs)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.app(globals, verbs, l.given).Run(l.words()); err != nil {
				t.Fatal(err)
			}
			if p.db != tt.db || p.json != tt.json || !strings.HasPrefix(p.actor, "cli:") {
				t.Errorf("got db %q, json %t, actor %q", p.db, p.json, p.actor)
			}
		})
	}
}

func TestCandidates(t *testing.T) {
	verbs := tryVerbs(nil)
	for i := range verbs {
		verbs[i].group = groupProduce
	}
	verbs[0].complete = func(flag string) []string { return map[string][]string{"queue": {"mail", "web"}, "": {"one"}}[flag] }
	tests := []struct{ line, want string }{
		{"~", "put work version"},
		{"wo", "put work version"},
		{"--json ~", "put work version"},
		{"put ~", "one"},
		{"put x -q ~", "mail web"},
		{"put --queue m", "mail web"},
		{"put --run-at ~", ""},
		{"zzz ~", ""},
		{"work -- ~", ""},
		{"version -", "--db --json --actor --no-color --help"},
	}
	for _, tt := range tests {
		var got []string
		for _, c := range candidates(verbs, words(tt.line)) {
			got = append(got, c[0])
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.line, got, tt.want)
		}
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for _, terminal := range []bool{false, true} {
		var stderr bytes.Buffer
		p := &program{stderr: &stderr, stderrTerminal: terminal}
		g := p.startProgress("importing", 10)
		for range 10 {
			g.add(1)
		}
		g.done()
		g.done()
		if got := strings.Contains(stderr.String(), "importing"); got != terminal {
			t.Errorf("terminal %t: got %q", terminal, stderr.String())
		}
	}
}
