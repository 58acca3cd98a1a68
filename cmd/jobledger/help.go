package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/urfave/cli/v2"
)

// helpVerb shows the help of a command, as --help does, or a page of the documentation.
func helpVerb(p *program) verb {
	return verb{
		name: "help", usage: "show help", args: "[COMMAND|TOPIC]", maxArgs: 1,
		about: "The topics are the pages of the documentation. On a terminal a topic is shown by $PAGER, or less.",
		examples: []example{
			{"jobledger help version", "the same as jobledger version --help"},
			{"jobledger help topics", "the pages of the documentation, one line each"},
			{"jobledger help operations", "one of them"},
		},
		run: func(c *cli.Context) error {
			return p.help(c.Args().First(), p.verbs())
		},
	}
}

// help prints the help of the verb or the topic named, or of the whole program for an empty name.
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
	topics, err := readTopics()
	if err != nil {
		return err
	}
	if name == topicsWord {
		return p.listTopics(topics)
	}
	for _, t := range topics {
		if t.Name == name {
			return p.showTopic(t)
		}
	}
	return unknownTopic(name, verbs, topics)
}

// unknownTopic says so, with the nearest command or topic that exists.
func unknownTopic(word string, verbs []verb, topics []topic) error {
	names := []string{topicsWord}
	for _, v := range verbs {
		names = append(names, v.name)
	}
	for _, t := range topics {
		names = append(names, t.Name)
	}
	err := usagef("unknown command or topic %q", word)
	if near := nearest(word, names); near != "" {
		return withHint(err, "did you mean '%s help %s'?", programName, near)
	}
	return withHint(err, "'%s help' lists the commands, '%s help %s' the topics", programName, programName, topicsWord)
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
	fmt.Fprintf(w, "'%s help %s' lists the pages of the documentation.\n", programName, topicsWord)
}

// writeVerbHelp writes the help of one command; the examples come first, most readers need no more.
func (p *program) writeVerbHelp(w io.Writer, v verb) {
	fmt.Fprintf(w, "%s %s: %s\n\nEXAMPLES\n", programName, v.name, v.usage)
	for _, e := range v.examples {
		fmt.Fprintf(w, "  %s\n", e.line)
		for _, l := range wrap(e.does, p.helpWidth()-6) {
			fmt.Fprintf(w, "      %s\n", l)
		}
	}
	fmt.Fprintf(w, "\nUSAGE\n  %s\n", v.synopsis())
	for paragraph := range strings.SplitSeq(v.about, "\n") {
		for i, l := range wrap(paragraph, p.helpWidth()-2) {
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
		for _, l := range wrap(r[1], p.helpWidth()-left-4) {
			fmt.Fprintf(w, "  %s  %s\n", pad(label, left, false), l)
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

// wrap breaks text between words into lines of at most width columns, longer only for a longer word.
func wrap(text string, width int) []string {
	var lines []string
	used := 0 // columns of the last line
	for _, word := range strings.Fields(text) {
		columns := uniseg.StringWidth(word)
		if len(lines) > 0 && used+1+columns <= width {
			lines[len(lines)-1] += " " + word
			used += 1 + columns
			continue
		}
		lines, used = append(lines, word), columns
	}
	return lines
}
