package cli

import (
	"fmt"
	"io"
	"slices"
)

// allWord as the argument of help shows every command.
const allWord = "all"

// FirstWords are the commands of the first screen of help, by what they are for. The others work as well:
// 'jobledger help all' lists them.
var FirstWords = []struct {
	Group    string
	Commands [][2]string // the name, and what it does in as few words as fit next to another one
}{
	{"RUN", [][2]string{{"enqueue", "put jobs into a queue"}, {"work", "run the jobs of a queue"},
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
