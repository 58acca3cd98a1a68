package main

import (
	"bufio"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// Every verb that is ever added must keep what the help, the completion and the parser rely on.
func TestVerbsAreWellFormed(t *testing.T) {
	p := &program{stdout: bufio.NewWriter(io.Discard), stderr: io.Discard, now: noon}
	seen := map[string]bool{}
	for _, v := range p.verbs() {
		if seen[v.name] {
			t.Errorf("%s: there are two of it", v.name)
		}
		seen[v.name] = true
		if v.group != "" && !slices.Contains(groups, v.group) {
			t.Errorf("%s: group %q is unknown", v.name, v.group)
		}
		if v.usage == "" || strings.HasSuffix(v.usage, ".") {
			t.Errorf("%s: usage %q", v.name, v.usage)
		}
		if len(v.examples) == 0 {
			t.Errorf("%s: no example", v.name)
		}
		for _, e := range v.examples {
			if !regexp.MustCompile(`\b` + programName + ` .*\b` + v.name + `\b`).MatchString(e[0]) {
				t.Errorf("%s: example %q does not run it", v.name, e[0])
			}
		}
		for _, code := range v.exits {
			if len(exitRows([]int{code})) == 0 {
				t.Errorf("%s: exit code %d has no meaning", v.name, code)
			}
		}
		if v.maxArgs != anyNumber && v.minArgs > v.maxArgs || v.maxArgs != 0 && v.args == "" {
			t.Errorf("%s: %d to %d arguments %q", v.name, v.minArgs, v.maxArgs, v.args)
		}
		names := map[string]bool{"help": true, "h": true}
		for _, f := range slices.Concat(v.flags, globalFlags("")) {
			if v.name == "events" && f.Names()[0] == "actor" && names["actor"] {
				continue // events by an actor: the one place where the global flag has another meaning
			}
			for i, name := range f.Names() {
				if (i == 0) != (len(name) > 1) || name != strings.ToLower(name) {
					t.Errorf("%s: flag %q: a long name first, then single letters", v.name, f.Names())
				}
				if names[name] {
					t.Errorf("%s: two flags called %s", v.name, name)
				}
				names[name] = true
			}
			if _, ok := f.(cli.DocGenerationFlag); !ok {
				t.Errorf("%s: flag %s has no description", v.name, f.Names()[0])
			}
		}
	}
}
