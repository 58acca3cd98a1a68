package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/cli"
)

// TestSwitchesTakeNoValue gives a value to each flag that takes none, for each verb: the error says so,
// before any other error of the line.
func TestSwitchesTakeNoValue(t *testing.T) {
	p := &program{&cli.Program{Stdout: bufio.NewWriter(io.Discard), Stderr: io.Discard, Now: noon}}
	switches := 0
	for _, v := range p.verbs() {
		for _, f := range slices.Concat(v.Flags, cli.GlobalFlags("")) {
			s, ok := f.(*cli.BoolFlag)
			if !ok {
				continue
			}
			switches++
			var stderr strings.Builder
			p.Stderr = &stderr
			word := "--" + s.Name + "=2s"
			code := p.run(t.Context(), []string{v.Name, word})
			want := fmt.Sprintf("jobledger: --%s takes no value, so it cannot be %q\n", s.Name, "2s")
			if code != cli.ExitUsage || !strings.HasPrefix(stderr.String(), want) {
				t.Errorf("%s %s: exit %d, %s", v.Name, word, code, stderr.String())
			}
		}
	}
	if switches < 100 {
		t.Errorf("only %d flags without a value were tried", switches)
	}
}

// Every verb must satisfy what the help, the completion and the parser rely on.
func TestVerbsAreWellFormed(t *testing.T) {
	p := &program{&cli.Program{Stdout: bufio.NewWriter(io.Discard), Stderr: io.Discard, Now: noon}}
	seen := map[string]bool{}
	for _, v := range p.verbs() {
		if seen[v.Name] {
			t.Errorf("%s: there are two of it", v.Name)
		}
		seen[v.Name] = true
		if v.Group != "" && !slices.Contains(cli.Groups, v.Group) {
			t.Errorf("%s: group %q is unknown", v.Name, v.Group)
		}
		if v.Usage == "" || strings.HasSuffix(v.Usage, ".") {
			t.Errorf("%s: usage %q", v.Name, v.Usage)
		}
		if len(v.Examples) == 0 {
			t.Errorf("%s: no example", v.Name)
		}
		for _, e := range v.Examples {
			if !regexp.MustCompile(`\b` + cli.ProgramName + ` .*\b` + v.Name + `\b`).MatchString(e[0]) {
				t.Errorf("%s: example %q does not run it", v.Name, e[0])
			}
		}
		for _, code := range v.Exits {
			if len(cli.ExitRows([]int{code})) == 0 {
				t.Errorf("%s: exit code %d has no meaning", v.Name, code)
			}
		}
		if v.MaxArgs != cli.AnyNumber && v.MinArgs > v.MaxArgs || v.MaxArgs != 0 && v.Args == "" {
			t.Errorf("%s: %d to %d arguments %q", v.Name, v.MinArgs, v.MaxArgs, v.Args)
		}
		names := map[string]bool{"help": true, "h": true}
		for _, f := range slices.Concat(v.Flags, cli.GlobalFlags("")) {
			if v.Name == "events" && f.Names()[0] == "actor" && names["actor"] {
				continue // events by an actor: here alone the global flag has another meaning
			}
			for i, name := range f.Names() {
				if (i == 0) != (len(name) > 1) || i == 0 && name != strings.ToLower(name) {
					t.Errorf("%s: flag %q: a long name first, then single letters", v.Name, f.Names())
				}
				if names[name] {
					t.Errorf("%s: two flags called %s", v.Name, name)
				}
				names[name] = true
			}
			if _, ok := f.(urfave.DocGenerationFlag); !ok {
				t.Errorf("%s: flag %s has no description", v.Name, f.Names()[0])
			}
		}
	}
}
