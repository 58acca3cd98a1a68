package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// The first screen of help fits a terminal of 80 columns and 24 lines, names at most 25 commands, all of
// which there are, and says where the others are.
func TestHelpFirstScreen(t *testing.T) {
	var out bytes.Buffer
	p := &program{cli.NewProgram()}
	p.Stdout = bufio.NewWriter(&out)
	check(t, p.Help("", p.verbs()))
	check(t, p.Flush())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) > 24 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if len(l) > 80 {
			t.Errorf("%d columns: %s", len(l), l)
		}
	}
	verbs := make(map[string]bool)
	for _, v := range p.verbs() {
		verbs[v.Name] = true
	}
	count := 0
	for _, g := range cli.FirstWords {
		for _, c := range g.Commands {
			if count++; !verbs[c[0]] || !strings.Contains(out.String(), " "+c[0]+" ") {
				t.Errorf("%s is not there", c[0])
			}
		}
	}
	if count > 25 {
		t.Errorf("%d commands", count)
	}
	out.Reset()
	check(t, p.Help("all", p.verbs()))
	check(t, p.Flush())
	for _, v := range p.verbs() {
		if v.Group != "" && !strings.Contains(out.String(), "\n  "+v.Name+" ") {
			t.Errorf("help all does not have %s", v.Name)
		}
	}
}
