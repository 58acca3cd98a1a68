package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/render"
)

// help prints the help of the verb named, or of the whole program for an empty name.
func (p *program) help(name string, verbs []verb) error {
	if name == "" {
		p.writeHelp(p.stdout, verbs)
		return nil
	}
	for _, v := range verbs {
		if v.name == name {
			p.writeVerbHelp(p.stdout, v)
			return nil
		}
	}
	return unknownCommand(name, verbs)
}

// writeHelp writes the help of the whole program: its commands by group.
func (p *program) writeHelp(w io.Writer, verbs []verb) {
	fmt.Fprintf(w, "%s: %s\n\nUSAGE\n  %s COMMAND [flags] [arguments]\n", programName, programUsage, programName)
	left := 0
	for _, v := range verbs {
		left = max(left, len(v.name))
	}
	for _, group := range groups {
		var rows [][2]string
		for _, v := range verbs {
			if v.group == group {
				rows = append(rows, [2]string{v.name, v.usage})
			}
		}
		if len(rows) > 0 {
			fmt.Fprintf(w, "\n%s\n", strings.ToUpper(group))
			p.writeRows(w, rows, left)
		}
	}
	fmt.Fprint(w, "\nGLOBAL FLAGS, anywhere on the line\n")
	p.writeRows(w, flagRows(globalFlags("")), 0)
	fmt.Fprintf(w, "\n'%s COMMAND --help' shows examples, flags and exit codes.\n", programName)
}

// writeVerbHelp writes the help of one command; the examples come first, most readers need no more.
func (p *program) writeVerbHelp(w io.Writer, v verb) {
	fmt.Fprintf(w, "%s %s: %s\n\nEXAMPLES\n", programName, v.name, v.usage)
	for _, e := range v.examples {
		fmt.Fprintf(w, "  %s\n", e[0])
		for _, l := range render.Wrap(e[1], p.helpWidth()-6) {
			fmt.Fprintf(w, "      %s\n", l)
		}
	}
	fmt.Fprintf(w, "\nUSAGE\n  %s\n", v.synopsis())
	for paragraph := range strings.SplitSeq(v.about, "\n") {
		for i, l := range render.Wrap(paragraph, p.helpWidth()-2) {
			if i == 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "  %s\n", l)
		}
	}
	if len(v.flags) > 0 {
		fmt.Fprint(w, "\nFLAGS\n")
		p.writeRows(w, flagRows(v.flags), 0)
	}
	fmt.Fprint(w, "\nGLOBAL FLAGS\n")
	p.writeRows(w, flagRows(globalFlags("")), 0)
	fmt.Fprint(w, "\nEXIT CODES\n")
	p.writeRows(w, exitRows(v.exitCodes()), 0)
}

// exitRows are codes with their meanings.
func exitRows(codes []int) (rows [][2]string) {
	for _, m := range exitMeanings {
		for _, code := range codes {
			if code == m.code {
				rows = append(rows, [2]string{fmt.Sprint(code), m.text})
			}
		}
	}
	return rows
}

// flagRows are the visible flags: how to type them, and what cli says about them.
func flagRows(flags []cli.Flag) (rows [][2]string) {
	for _, f := range flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		label, text, _ := strings.Cut(f.String(), "\t")
		label, _, repeats := strings.Cut(label, " [ ") // "--tag value [ --tag value ]"
		if repeats {
			label += " …"
		}
		if r, ok := f.(cli.RequiredFlag); ok && r.IsRequired() {
			text += " (required)"
		}
		rows = append(rows, [2]string{label, text})
	}
	return rows
}

// writeRows writes pairs in two columns, the left one at least as wide as told.
func (p *program) writeRows(w io.Writer, rows [][2]string, left int) {
	const widest = 34 // a longer label pushes its text to the next line
	for _, r := range rows {
		if n := uniseg.StringWidth(r[0]); n <= widest {
			left = max(left, n)
		}
	}
	for _, r := range rows {
		label := r[0]
		if uniseg.StringWidth(label) > left || r[1] == "" {
			fmt.Fprintf(w, "  %s\n", label)
			label = ""
		}
		for _, l := range render.Wrap(r[1], p.helpWidth()-left-4) {
			fmt.Fprintf(w, "  %s  %s\n", render.Pad(label, left, false), l)
			label = ""
		}
	}
}

// helpWidth is the width for running text: that of the terminal, but never a line too long to read.
func (p *program) helpWidth() int {
	if p.width == 0 {
		return 100
	}
	return min(max(p.width, 40), 100)
}
