package cli

import (
	"fmt"
	"io"
	"slices"
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

// allWord as the argument of help shows every command.
const allWord = "all"

// FirstWords are the commands of the first screen of help, by purpose. The others work as well: 'jobledger
// help all' lists them.
var FirstWords = []struct {
	Group    string
	Commands [][2]string // the name, and what it does in as few words as fit next to another one
}{
	{"RUN", [][2]string{{"run", "a command, with a record"}, {"enqueue", "put jobs into a " +
		"queue"}, {"work", "run the jobs of a queue"},
		{"schedule", "jobs at set times"}, {"wait", "until jobs have ended"}}},
	{"LOOK", [][2]string{{"status", "how things stand"}, {"list", "jobs, the newest first"},
		{"show", "one job"}, {"logs", "what its command wrote"},
		{"why", "why it is in its state"}, {"history", "what happened to it"},
		{"workers", "who works on what"}, {"serve", "all this in a browser"}}},
	{"ACT", [][2]string{{"cancel", "end jobs"}, {"retry", "run jobs once more"},
		{"pause", "hold a queue"}, {"resume", "let it go on"},
		{"queue", "defaults for its jobs"}, {"limit", "how many run at a time"}}},
	{"NIGHT", [][2]string{{"report", "what a window of time held"}, {"replay", "the past, as a copy"}}},
	{"KEEP", [][2]string{{"verify", "check the ledger"}, {"backup", "copy it"},
		{"doctor", "what is wrong around it"}}},
}

// writeFirstHelp writes the first screen: the commands that most people need, those of verbs that there are.
func (p *Program) writeFirstHelp(w io.Writer, verbs []Verb) {
	fmt.Fprintf(w, "%s: run jobs, and know for ever what became of them\n\n", ProgramName)
	for _, g := range FirstWords {
		label, column, left := g.Group, 0, 0
		for _, c := range g.Commands {
			if !slices.ContainsFunc(verbs, func(v Verb) bool { return v.Name == c[0] }) {
				continue
			}
			if column == 0 {
				fmt.Fprintf(w, "  %-7s", label)
			}
			if label, column = "", column+1; column == 1 {
				fmt.Fprintf(w, "%-9s %s", c[0], c[1])
				left = 29 - len(c[1])
				continue
			}
			fmt.Fprintf(w, "%*s%-8s %s\n", left, "", c[0], c[1])
			column = 0
		}
		if column == 1 {
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintf(w, "\nNew here?  %[1]s demo    %[1]s help quickstart    %[1]s help topics\n", ProgramName)
	fmt.Fprintf(w, "More:      %[1]s help %[2]s (every command)    %[1]s COMMAND --help\n", ProgramName, allWord)
}
