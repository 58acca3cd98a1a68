package cli

import (
	"fmt"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/words"
)

// Manual returns the text under v's name in the manual page.
func (v Verb) Manual() string {
	var b strings.Builder
	b.WriteString(v.synopsis() + "\n")
	for paragraph := range strings.SplitSeq(v.About, "\n") {
		for i, l := range words.Wrap(paragraph, 72) {
			if i == 0 {
				b.WriteString("\n")
			}
			b.WriteString(l + "\n")
		}
	}
	for _, e := range v.Examples {
		b.WriteString("\n" + e[0] + "\n    " + e[1] + "\n")
	}
	return b.String()
}

// EnvironmentRows returns the environment variables that set flags, each with those flags.
func EnvironmentRows(globals []Flag, verbs []Verb) (rows [][2]string) {
	feeds := map[string][]string{}
	var names []string
	collect := func(flags []Flag, where string) {
		for _, f := range flags {
			d, ok := f.(urfave.DocGenerationFlag)
			if !ok {
				continue
			}
			for _, name := range d.GetEnvVars() {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
				feeds[name] = append(feeds[name], where+"--"+f.Names()[0])
			}
		}
	}
	collect(globals, "")
	for _, v := range verbs {
		collect(v.Flags, v.Name+" ")
	}
	for _, name := range names {
		rows = append(rows, [2]string{name, "stands for " + strings.Join(feeds[name], ", ") +
			", unless that is given."})
	}
	return append(rows, [2]string{"NO_COLOR", "if not empty, no colors, as --no-color."})
}

// RoffSection returns a section of a manual page, with a tagged paragraph for each row.
func RoffSection(title string, rows [][2]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n.SH %s\n", title)
	for _, r := range rows {
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", roffText(r[0]), roffText(r[1]))
	}
	return b.String()
}

// roffText escapes text so that roff finds no requests in it.
func roffText(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

// RoffASCII replaces characters outside ASCII by their numbers, because not every roff reads UTF-8.
func RoffASCII(page string) string {
	var b strings.Builder
	for _, r := range page {
		if r > '~' {
			fmt.Fprintf(&b, `\[u%04X]`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
