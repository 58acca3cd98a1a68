package cli

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/fault"
)

// tryVerbs are verbs with flags of every type.
func tryVerbs(run func(c *Context) error) []Verb {
	flags := func() []Flag {
		return []Flag{
			ListFlag("queue", "`QUEUE`", "q"),
			WholeFlag("priority", "`N`", 0, -100, 100, ""),
			WholeFlag("parallel", "`N`", 1, 1, 1000, "", "j"),
			&StringFlag{Name: "run-at", Usage: "`TIME`"},
			&StringFlag{Name: "version", Usage: "`V`"},
			&BoolFlag{Name: "follow", Aliases: []string{"f"}},
			&BoolFlag{Name: "once", Aliases: []string{"x"}},
		}
	}
	return []Verb{
		{Name: "put", MaxArgs: AnyNumber, Flags: flags(), Run: run},
		{Name: "work", Rest: "CMD", MaxArgs: AnyNumber, Flags: flags(), Run: run},
		{Name: "version", Flags: nil, Run: run},
	}
}

func TestNormalizeFlagsBeforeArguments(t *testing.T) {
	tests := []struct {
		typed string // words separated by blanks; ~ is an empty word
		want  string
	}{
		{"put", "put --"},
		{"put hello", "put -- hello"},
		{"put hello -q mail", "put --queue=mail -- hello"},
		{"put -q mail hello --json", "--json put --queue=mail -- hello"},
		{"--json put", "--json put --"},
		{"--db x.db put", "--db=x.db put --"},
		{"put a --db=x.db b", "--db=x.db put -- a b"},
		{"put -q a --queue b", "put --queue=a --queue=b --"},
		{"put -f --json -f --json", "--json --json put --follow --follow --"},
		{"put --queue=a=b", "put --queue=a=b --"},
		{"put --queue=", "put --queue= --"},
		{"put --queue ~ ~", "put --queue= -- ~"},
		{"put -qmail", "put --queue=mail --"},
		{"put -q=mail", "put --queue=mail --"},
		{"put -j8", "put --parallel=8 --"},
		{"put -fx", "put --follow --once --"},
		{"put -fq mail", "put --follow --queue=mail --"},
		{"put -fxqmail", "put --follow --once --queue=mail --"},
		{"put --follow=false", "put --follow=false --"},
		{"put -f=false", "put --follow=false --"},
		{"put --follow hello", "put --follow -- hello"},
		{"put --run-at -2h", "put --run-at=-2h --"},
		{"put --priority -5 x", "put --priority=-5 -- x"},
		{"put --run-at --json", "put --run-at=--json --"},
		{"put -", "put -- -"},
		{"put --run-at - x", "put --run-at=- -- x"},
		{"put -- --json -q", "put -- --json -q"},
		{"put a -- -b --", "put -- a -b --"},
		{"put --run-at=-- x", "put --run-at=-- -- x"},
		{"put put", "put -- put"},
		{"put help", "put -- help"},
		{"put --version 3", "put --version=3 --"},
		{"work -q mail -- sh -c x -- y", "work --queue=mail -- | sh -c x -- y"},
		{"work -q mail -- --help", "work --queue=mail -- | --help"},
		{"work -q mail --", "work --queue=mail -- |"},
		{"work -q mail sh -f", "work --queue=mail --follow -- sh"},
	}
	for _, tt := range tests {
		l, err := normalize(wordsOf(tt.typed), GlobalFlags(""), tryVerbs(nil))
		if err != nil {
			t.Errorf("%s: %v", tt.typed, err)
			continue
		}
		got := slices.Clone(l.words()[1:])
		if l.rest != nil {
			got = append(append(got, "|"), l.rest...)
		}
		if want := wordsOf(tt.want); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", tt.typed, got, want)
		}
	}
}

func TestNormalizeFindsHelpAndVersion(t *testing.T) {
	tests := []struct {
		typed, verb   string
		help, version bool
	}{
		{"--help", "", true, false},
		{"-h", "", true, false},
		{"put -h", "put", true, false},
		{"--help put", "put", true, false},
		{"put hello --help -q mail", "put", true, false},
		{"put -fh", "put", true, false},
		{"put --run-at --help", "put", false, false},
		{"work -q mail -- --help", "work", false, false},
		{"--version", "", false, true},
		{"--json --version", "", false, true},
		{"", "", false, false},
		{"-- put", "", false, false},
	}
	for _, tt := range tests {
		l, err := normalize(wordsOf(tt.typed), GlobalFlags(""), tryVerbs(nil))
		if err != nil || l.verb != tt.verb || l.help != tt.help || l.version != tt.version {
			t.Errorf("%s: got verb %q, help %t, version %t, %v", tt.typed, l.verb, l.help, l.version, err)
		}
	}
}

func TestNormalizeRefuses(t *testing.T) {
	tests := []struct{ typed, why, hint string }{
		{"putt", `unknown command "putt"`, "did you mean 'jobledger put'?"},
		{"zzz", `unknown command "zzz"`, "see 'jobledger --help'"},
		{"~", `unknown command ""`, "see 'jobledger --help'"},
		{"put --quue a", "unknown flag --quue for put", "did you mean --queue?"},
		{"put --q a", "unknown flag --q for put", ""},
		{"put --zzz", "unknown flag --zzz for put", "see 'jobledger put --help'"},
		{"put --zzz=1", "unknown flag --zzz for put", ""},
		{"put -fz", "unknown flag -fz for put", ""},
		{"put -5", "unknown flag -5 for put",
			"put -- in front of an argument that begins with a dash; see 'jobledger put --help'"},
		{"-q mail put", "unknown flag -q", "the flags of a command follow its name; see 'jobledger --help'"},
		{"put -queue mail", "-queue: a long flag begins with two dashes", "did you mean --queue?"},
		{"put -help", "-help: a long flag begins with two dashes", "did you mean --help?"},
		{"put -q", "flag -q needs a value", "see 'jobledger put --help'"},
		{"put --run-at", "flag --run-at needs a value", ""},
		{"put --run-at -- x", "flag --run-at needs a value", "to give -- itself as the value, write --run-at=--"},
		{"put ---", "unknown flag --- for put", ""},
		{"put -é", "unknown flag -é for put", ""},
		{"put --run-at -1h --run-at=-2h", "flag --run-at is given twice, but takes one value", ""},
		{"put -j1 -j 1", "flag --parallel is given twice, but takes one value", ""},
		{"--db a put --db b", "flag --db is given twice, but takes one value", ""},
	}
	for _, tt := range tests {
		_, err := normalize(wordsOf(tt.typed), GlobalFlags(""), tryVerbs(nil))
		code, why, hint := fault.Explain(err)
		if code != ExitUsage || why != tt.why || tt.hint != "" && hint != tt.hint {
			t.Errorf("%s: got %d, %q, hint %q; want %q, hint %q", tt.typed, code, why, hint, tt.why, tt.hint)
		}
	}
}

func TestFlagValuesReachVerb(t *testing.T) {
	var got *Context
	p := &Program{}
	verbs := tryVerbs(func(c *Context) error { got = c; return nil })
	typed := []string{"put", "a", "-q", "x,y", "--queue", " z ", "--priority", "-010", "--run-at=-2h", "-f",
		"--", "--b"}
	l, err := normalize(typed, GlobalFlags(""), verbs)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.App(GlobalFlags(""), verbs, l.givenGlobals()).RunContext(context.Background(),
		l.words()); err != nil {
		t.Fatal(err)
	}
	if q := got.StringSlice("queue"); !slices.Equal(q, []string{"x,y", " z "}) {
		t.Errorf("got queues %q", q)
	}
	if n := got.Int("priority"); n != -10 {
		t.Errorf("got priority %d", n)
	}
	if s := got.String("run-at"); s != "-2h" {
		t.Errorf("got run-at %q", s)
	}
	if !got.Bool("follow") || got.Bool("once") {
		t.Errorf("got follow %t, once %t", got.Bool("follow"), got.Bool("once"))
	}
	if args := got.Args().Slice(); !slices.Equal(args, []string{"a", "--b"}) {
		t.Errorf("got arguments %q", args)
	}
}

func TestFlagBadValuesAreUsageErrors(t *testing.T) {
	tests := []struct{ typed, why string }{
		{"put --priority x", `--priority: "x" is not a whole number from -100 to 100`},
		{"put --priority 101", `--priority: "101" is not a whole number from -100 to 100`},
		{"put --priority 99999999999999999999",
			`--priority: "99999999999999999999" is not a whole number from -100 to 100`},
		{"put --priority 0x10", `--priority: "0x10" is not a whole number from -100 to 100`},
		{"put --priority 1e1", `--priority: "1e1" is not a whole number from -100 to 100`},
		{"put --priority=", `--priority: "" is not a whole number from -100 to 100`},
		{"put --follow=maybe", `--follow takes no value, so it cannot be "maybe"`},
		{"put --json=maybe", `--json takes no value, so it cannot be "maybe"`},
		{"put --db=", `--db is empty`},
	}
	for _, tt := range tests {
		p, verbs := &Program{}, tryVerbs(func(*Context) error { return nil })
		l, err := normalize(wordsOf(tt.typed), GlobalFlags(""), verbs)
		if err == nil {
			err = p.App(GlobalFlags(""), verbs, l.givenGlobals()).RunContext(context.Background(), l.words())
		}
		if code, why, _ := fault.Explain(err); code != ExitUsage || why != tt.why {
			t.Errorf("%s: got %d, %q; want %q", tt.typed, code, why, tt.why)
		}
	}
}

// FuzzNormalize checks normalized lines: normalizing them again changes nothing, cli accepts them, and
// everything after the first "--" is unchanged.
func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{
		"put -q mail hello --json", "put -fxqmail - --run-at -2h", "work -j8 -- sh -c x", "--db x put -- --json",
		"put --version 3 ~ help", "put -h", "put --queue=a=b --follow=false", "version --json",
	} {
		f.Add(strings.ReplaceAll(seed, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		typed := strings.Split(text, "\n")
		var args []string
		verbs := tryVerbs(func(c *Context) error { args = c.Args().Slice(); return nil })
		l, err := normalize(slices.Clone(typed), GlobalFlags(""), verbs)
		if err != nil {
			if code, _, _ := fault.Explain(err); code != ExitUsage {
				t.Fatalf("%q: exit %d: %v", typed, code, err)
			}
			return
		}
		if i := slices.Index(typed, "--"); i >= 0 && l.verb == "work" && !slices.Equal(l.rest, typed[i+1:]) {
			t.Fatalf("%q: got rest %q", typed, l.rest)
		}
		if l.verb == "" || l.help || l.version {
			return
		}
		again := slices.Concat(l.globals, []string{l.verb}, l.flags)
		switch {
		case l.verb != "work":
			again = append(append(again, "--"), l.args...)
		case l.cut:
			again = append(append(append(again, l.args...), "--"), l.rest...)
		default:
			again = append(again, l.args...)
		}
		m, err := normalize(again, GlobalFlags(""), verbs)
		if err != nil {
			t.Fatalf("%q: again %q: %v", typed, again, err)
		}
		if m.cut = l.cut; len(l.args)+len(m.args) == 0 {
			m.args = l.args
		}
		if len(l.rest)+len(m.rest) == 0 {
			m.rest = l.rest
		}
		if !reflect.DeepEqual(l, m) {
			t.Fatalf("%q: got %+v, again %+v", typed, l, m)
		}
		p := &Program{stdin: strings.NewReader(""), Stderr: io.Discard}
		err = p.App(GlobalFlags(""), verbs, l.givenGlobals()).RunContext(context.Background(), l.words())
		if _, ours := errors.AsType[*Error](err); err != nil && !ours {
			t.Fatalf("%q: cli does not understand %q: %v", typed, l.words(), err)
		}
		if err == nil && !slices.Equal(args, l.args) {
			t.Fatalf("%q: got arguments %q, want %q", typed, args, l.args)
		}
	})
}

// wordsOf splits a line at blanks; ~ is an empty word.
func wordsOf(text string) []string {
	all := strings.Fields(text)
	for i, w := range all {
		if w == "~" {
			all[i] = ""
		}
	}
	return all
}
