package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
)

func TestExitCodesOfErrors(t *testing.T) {
	tests := []struct {
		err       error
		code      int
		why, hint string
	}{
		{nil, 0, "", ""},
		{errors.New("oops"), 1, "oops", ""},
		{Usagef("no %s", "x"), 2, "no x", ""},
		{WithHint(Usagef("no x"), "say %s", "y"), 2, "no x", "say y"},
		{WithHint(WithHint(Usagef("no x"), "first"), "second"), 2, "no x", "first"},
		{WithHint(errors.New("oops"), "try"), 1, "oops", "try"},
		{WithHint(nil, "try"), 0, "", ""},
		{fmt.Errorf("job 7: %w", Exitf(ExitConflict, "taken")), 6, "job 7: taken", ""},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), 124, "wait: context deadline exceeded", ""},
		{fmt.Errorf("print: %w", syscall.EPIPE), 0, "print: broken pipe", ""},
		{errors.Join(Exitf(ExitDiscrepancy, "bad"), syscall.EPIPE), 8, "bad\nbroken pipe", ""},
	}
	for _, tt := range tests {
		code, why, hint := fault.Explain(tt.err)
		if code != tt.code || why != tt.why || hint != tt.hint {
			t.Errorf("%v: got %d, %q, %q", tt.err, code, why, hint)
		}
	}
}

func TestMissingArgumentsAndFlags(t *testing.T) {
	one := Verb{Name: "cancel", Args: "JOB…", MinArgs: 1, MaxArgs: AnyNumber}
	none := Verb{Name: "status"}
	work := Verb{Name: "work", Rest: "CMD ARGS…", Flags: []Flag{
		&StringSliceFlag{Name: "queue", Aliases: []string{"q"}, Required: true},
		&StringFlag{Name: "token", Required: true, EnvVars: []string{"TRY_TOKEN"}},
	}}
	t.Setenv("TRY_TOKEN", "x")
	tests := []struct {
		v         Verb
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
		l, err := normalize(wordsOf(tt.typed), GlobalFlags(""), []Verb{tt.v})
		if err != nil {
			t.Fatal(err)
		}
		if err = tt.v.missingFlag(l); err == nil {
			err = tt.v.checkArgs(l)
		}
		if _, why, hint := fault.Explain(err); why != tt.why || tt.hint != "" && hint != tt.hint {
			t.Errorf("%s: got %q, hint %q", tt.typed, why, hint)
		}
	}
}

func TestHelpLeadsWithExamples(t *testing.T) {
	p, out := printing(0, false)
	v := Verb{
		Name: "pause", Group: GroupOperate, Usage: "stop handing out the jobs of a queue",
		About: "Jobs that are running go on.\nNew ones wait.",
		Flags: []Flag{
			&StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE`", Required: true},
			ListFlag("tag", "only with `K=V`"),
			DurationFlag("lease", "for `D`", "1m", 0, 0, false),
			WholeFlag("limit", "at most `N`", 0, 1, 10, "all"),
			&StringFlag{Name: "secret", Hidden: true},
		},
		Examples: []Example{{"jobledger pause -q mail", "nothing is claimed from mail any more"}},
		Exits:    []int{ExitConflict},
	}
	p.writeVerbHelp(p.Stdout, v)
	p.Flush()
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

// pauseLike is a verb of the common form: flags become values, one call, one answer in two forms.
func pauseLike(p *Program) Verb {
	return Verb{
		Name: "pause", Group: GroupOperate, Usage: "stop handing out the jobs of a queue",
		Flags: []Flag{
			&StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE` to pause", Required: true},
			&StringFlag{Name: "reason", Usage: "why, for the readers of the history"},
			DurationFlag("grace", "wait `D` first", "", 0, time.Hour, true),
			&StringFlag{Name: "since", Usage: "from `TIME` on"},
		},
		Examples: []Example{{"jobledger pause -q mail", "nothing is claimed from mail until it is resumed"}},
		Exits:    []int{ExitConflict},
		Run: func(c *Context) error {
			since, given, err := p.WhenFlag(c, "since")
			if err != nil {
				return err
			}
			if !given {
				since.Time = p.Now()
			}
			grace, given := DurationValue(c, "grace")
			queue := c.String("queue")
			if queue == "gone" {
				return WithHint(Exitf(ExitConflict, "queue %s is paused already", queue), "see 'jobledger status'")
			}
			if p.JSON {
				return p.PrintJSON(map[string]any{
					"queue": queue, "reason": c.String("reason"), "since": words.JSONTime(since.Time),
					"grace": grace.Seconds(), "given": given,
				})
			}
			t := &Table{Columns: []Column{{Title: "QUEUE", Least: 8}, {Title: "STATE", State: true}, {Title: "SINCE"}}}
			t.Add(queue, "paused", words.Age(since.Time, p.Now()))
			return p.PrintTable(t)
		},
	}
}

func TestProgramRunsVerb(t *testing.T) {
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
		{"-q mail --since 2026-02-30", 2, "",
			"jobledger: --since: \"2026-02-30\" is not a time\nhint: " +
				when.SpokenForms + "\n"},
	}
	for _, tt := range tests {
		p, stdout := printing(0, false)
		var stderr strings.Builder
		p.Stderr = &stderr
		code := p.finish(p.Dispatch(t.Context(), append([]string{"pause"}, wordsOf(tt.typed)...),
			[]Verb{pauseLike(p)}))
		if code != tt.code || stdout.String() != tt.stdout || stderr.String() != tt.stderr {
			t.Errorf("%s: got exit %d\n%s%s", tt.typed, code, stdout, stderr.String())
		}
	}
}

// A terminal shows, once, how a time without a zone was understood.
func TestTerminalShowsTimes(t *testing.T) {
	p, _ := printing(0, false)
	var stderr strings.Builder
	p.Stderr, p.StderrTerminal = &stderr, true
	for range 2 {
		for _, typed := range []string{"-q mail --since -2h", "-q mail --since 2026-05-04T06:00Z",
			"-q mail --since yesterday"} {
			if code := p.finish(p.Dispatch(t.Context(), append([]string{"pause"}, wordsOf(typed)...),
				[]Verb{pauseLike(p)})); code != 0 {
				t.Errorf("%s: exit %d", typed, code)
			}
		}
	}
	if got, want := stderr.String(), "jobledger: since Sun 2026-05-03 00:00 "; strings.Count(got, "\n") != 1 ||
		!strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %s", got, want)
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
			p := &Program{}
			verbs := []Verb{{Name: "try", Run: func(*Context) error { return nil }}}
			globals := GlobalFlags(p.DefaultActor())
			l, err := normalize(wordsOf(tt.line), globals, verbs)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.App(globals, verbs, l.givenGlobals()).Run(l.words()); err != nil {
				t.Fatal(err)
			}
			if p.DB != tt.db || p.JSON != tt.json || !strings.HasPrefix(p.Actor, "cli:") {
				t.Errorf("got db %q, json %t, actor %q", p.DB, p.JSON, p.Actor)
			}
		})
	}
}

func TestCandidates(t *testing.T) {
	verbs := tryVerbs(nil)
	for i := range verbs {
		verbs[i].Group = GroupProduce
	}
	verbs[0].Complete = map[string][]string{"queue": {"mail", "web"}, "": {"one"}}
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
		for _, c := range (&Program{}).candidates(verbs, wordsOf(tt.line)) {
			got = append(got, c[0])
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.line, got, tt.want)
		}
	}
}

func TestProgressOnTerminalOnly(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for _, terminal := range []bool{false, true} {
		var stderr bytes.Buffer
		p := &Program{Stderr: &stderr, StderrTerminal: terminal}
		g := p.StartProgress("importing", 10)
		for range 10 {
			g.Add(1)
		}
		g.Done()
		g.Done()
		if got := strings.Contains(stderr.String(), "importing"); got != terminal {
			t.Errorf("terminal %t: got %q", terminal, stderr.String())
		}
	}
}
