package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"
	urfave "github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
)

// Help prints the help of the verb or the topic named, all commands for "all", or those that most people need
// for an empty name.
func (p *Program) Help(name string, verbs []Verb) error {
	switch name {
	case "":
		p.writeFirstHelp(p.Stdout, verbs)
		return nil
	case allWord:
		p.writeHelp(p.Stdout, verbs)
		return nil
	}
	for _, v := range verbs {
		if v.Name == name {
			p.writeVerbHelp(p.Stdout, v)
			return nil
		}
	}
	return p.HelpTopic(name, verbs)
}

// writeHelp writes the help of the whole program: its commands by group.
func (p *Program) writeHelp(w io.Writer, verbs []Verb) {
	fmt.Fprintf(w, "%s: %s\n\nUSAGE\n  %s COMMAND [flags] [arguments]\n", ProgramName, programUsage, ProgramName)
	left := 0
	for _, v := range verbs {
		left = max(left, len(v.Name))
	}
	for _, group := range Groups {
		var rows [][2]string
		for _, v := range verbs {
			if v.Group == group {
				rows = append(rows, [2]string{v.Name, v.Usage})
			}
		}
		if len(rows) > 0 {
			fmt.Fprintf(w, "\n%s\n", strings.ToUpper(group))
			p.writeRows(w, rows, left)
		}
	}
	fmt.Fprint(w, "\nGLOBAL FLAGS, anywhere on the line\n")
	p.writeRows(w, flagRows(GlobalFlags("")), 0)
	fmt.Fprintf(w, "\n'%s COMMAND --help' shows examples, flags and exit codes.\n", ProgramName)
	fmt.Fprintf(w, "'%s help %s' lists the pages of the documentation.\n", ProgramName, topicsWord)
}

// writeVerbHelp writes the help of one command; the examples come first, most readers need no more.
func (p *Program) writeVerbHelp(w io.Writer, v Verb) {
	fmt.Fprintf(w, "%s %s: %s\n\nEXAMPLES\n", ProgramName, v.Name, v.Usage)
	for _, e := range v.Examples {
		fmt.Fprintf(w, "  %s\n", e[0])
		for _, l := range words.Wrap(e[1], p.helpWidth()-6) {
			fmt.Fprintf(w, "      %s\n", l)
		}
	}
	fmt.Fprintf(w, "\nUSAGE\n  %s\n", v.synopsis())
	for paragraph := range strings.SplitSeq(v.About, "\n") {
		for i, l := range words.Wrap(paragraph, p.helpWidth()-2) {
			if i == 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "  %s\n", l)
		}
	}
	if len(v.Flags) > 0 {
		fmt.Fprint(w, "\nFLAGS\n")
		p.writeRows(w, flagRows(v.Flags), 0)
	}
	fmt.Fprint(w, "\nGLOBAL FLAGS\n")
	p.writeRows(w, flagRows(GlobalFlags("")), 0)
	fmt.Fprint(w, "\nEXIT CODES\n")
	p.writeRows(w, ExitRows(v.exitCodes()), 0)
}

// ExitRows returns pairs of an exit code and its meaning.
func ExitRows(codes []int) (rows [][2]string) {
	for _, m := range fault.ExitMeanings {
		for _, code := range codes {
			if code == m.Code {
				rows = append(rows, [2]string{fmt.Sprint(code), m.Text})
			}
		}
	}
	return rows
}

// flagRows returns pairs for the visible flags: how to type one, and its description.
func flagRows(flags []Flag) (rows [][2]string) {
	for _, f := range flags {
		if v, ok := f.(urfave.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		label, text, _ := strings.Cut(f.String(), "\t")
		label, _, repeats := strings.Cut(label, " [ ") // "--tag value [ --tag value ]"
		if repeats {
			label += " …"
		}
		if r, ok := f.(urfave.RequiredFlag); ok && r.IsRequired() {
			text += " (required)"
		}
		rows = append(rows, [2]string{label, text})
	}
	return rows
}

// writeRows writes pairs in two columns, the left one at least as wide as left.
func (p *Program) writeRows(w io.Writer, rows [][2]string, left int) {
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
		for _, l := range words.Wrap(r[1], p.helpWidth()-left-4) {
			fmt.Fprintf(w, "  %s  %s\n", words.Pad(label, left, false), l)
			label = ""
		}
	}
}

// helpWidth returns the width for running text: that of the terminal, up to 100 columns.
func (p *Program) helpWidth() int {
	if p.Width == 0 {
		return 100
	}
	return min(max(p.Width, 40), 100)
}
