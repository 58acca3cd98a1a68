package main

import (
	"bufio"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/cli"
)

// Every verb that is ever added must keep what the help, the completion and the parser rely on.
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
				continue // events by an actor: the one place where the global flag has another meaning
			}
			for i, name := range f.Names() {
				if (i == 0) != (len(name) > 1) || name != strings.ToLower(name) {
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
