// Package many makes commands of lines, and prints what several commands at once wrote so that their outputs
// do not mix. It is what 'jobledger run --lines' needs and nothing else does.
//
//   - template.go: [Template], a command with placeholders; [Split] and [Combine], values of the command line
//   - halt.go: [Halt], when to run no more
//   - spool.go: [Printer], outputs job by job
//   - run.go, worker.go: [Program.Run], the jobs, and the worker that takes these only
//
// Held by TestTemplateFills, TestTemplateIsNoShellText and TestPrinterKeepsOrder here, and by
// TestScripts/many of the program.
package many

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"regexp"
	"strconv"
	"strings"

	"jobledger/commands/argv"
)

// Separator is the word before values on the command line.
const Separator = ":::"

// Split returns the words of the command, and the values after each [Separator].
func Split(words []string) (command []string, lists [][]string) {
	for _, word := range words {
		switch {
		case word == Separator:
			lists = append(lists, nil)
		case len(lists) > 0:
			lists[len(lists)-1] = append(lists[len(lists)-1], word)
		default:
			command = append(command, word)
		}
	}
	return command, lists
}

// Combine yields each combination of a value of every list, the last list varying first.
func Combine(lists [][]string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		chosen := make([]int, len(lists))
		for _, list := range lists {
			if len(list) == 0 {
				return
			}
		}
		for {
			values := make([]string, len(lists))
			for i, list := range lists {
				values[i] = list[chosen[i]]
			}
			if !yield(values) {
				return
			}
			i := len(lists) - 1
			for ; i >= 0; i-- {
				if chosen[i]++; chosen[i] < len(lists[i]) {
					break
				}
				chosen[i] = 0
			}
			if i < 0 {
				return
			}
		}
	}
}

// Template is a command with placeholders.
type Template struct {
	words [][]part
	shell bool // the first word is text for /bin/sh, and the others are its arguments
	open  bool // it has no placeholder, so the values come after it
}

// part is text, or a placeholder.
type part struct {
	text string
	what string // of the value: "" for all of it, ".", "/", "//", "/." or "#"; see change
	list int    // whose value it is; 0: those of all lists, one after the other
	is   bool   // a placeholder
	in   byte   // the quote of the shell around it; 0: none
}

var placeholder = regexp.MustCompile(`\{([1-9][0-9]*)?(//|/\.|/|\.)?\}|\{(#)\}`)

// New returns the command of these words for values of so many lists. With shell the first of them is text
// for /bin/sh. {1} stands for a value of the first list where there are several, and for itself otherwise.
func New(words []string, shell bool, lists int) (Template, error) {
	if len(words) == 0 {
		return Template{}, errors.New("a command is missing")
	}
	t := Template{shell: shell, open: true}
	for i, word := range words {
		var parts []part
		at := 0
		for _, m := range placeholder.FindAllStringSubmatchIndex(word, -1) {
			p := part{is: true}
			if m[2] >= 0 {
				n, err := strconv.Atoi(word[m[2]:m[3]])
				switch {
				case lists == 1:
					continue
				case err != nil || n > lists:
					return t, fmt.Errorf("%s: there are %d lists of values", word[m[0]:m[1]], lists)
				}
				p.list = n
			}
			if m[4] >= 0 {
				p.what = word[m[4]:m[5]]
			}
			if m[6] >= 0 {
				p.what = "#"
			}
			parts = append(parts, part{text: word[at:m[0]]}, p)
			at, t.open = m[1], false
		}
		parts = append(parts, part{text: word[at:]})
		if shell && i == 0 {
			quotes(parts)
		}
		t.words = append(t.words, parts)
	}
	return t, nil
}

// quotes notes the quotes of the shell around each placeholder.
func quotes(parts []part) {
	quote, escaped := byte(0), false
	for i := range parts {
		parts[i].in = quote
		for _, c := range []byte(parts[i].text) {
			switch {
			case escaped:
				escaped = false
			case c == '\\' && quote != '\'':
				escaped = true
			case c == quote:
				quote = 0
			case quote == 0 && (c == '\'' || c == '"'):
				quote = c
			}
		}
	}
}

// Fill returns the command for the values that come nth, one of each list. No value becomes text of a shell:
// the shell gets it as an argument, to which the text refers.
func (t Template) Fill(n int, values []string) []string {
	var filled, more []string
	for i, parts := range t.words {
		if t.shell && i == 0 {
			filled = append(filled, "") // see below
			continue
		}
		if len(parts) == 3 && parts[0].text+parts[2].text == "" { // a placeholder alone
			filled = append(filled, parts[1].values(n, values)...)
			continue
		}
		var word strings.Builder
		for _, p := range parts {
			word.WriteString(p.text)
			if p.is {
				word.WriteString(strings.Join(p.values(n, values), " "))
			}
		}
		filled = append(filled, word.String())
	}
	if !t.shell {
		if t.open {
			filled = append(filled, values...)
		}
		return filled
	}
	var text strings.Builder
	refer := func(p part) {
		for i, value := range p.values(n, values) {
			more = append(more, value)
			if i > 0 {
				text.WriteByte(' ')
			}
			reference := "${" + strconv.Itoa(len(filled)-1+len(more)) + "}"
			switch p.in {
			case 0:
				reference = `"` + reference + `"`
			case '\'':
				reference = `'"` + reference + `"'`
			}
			text.WriteString(reference)
		}
	}
	for _, p := range t.words[0] {
		text.WriteString(p.text)
		if p.is {
			refer(p)
		}
	}
	if t.open {
		text.WriteByte(' ')
		refer(part{is: true})
	}
	return argv.Shell(text.String(), append(filled[1:], more...)...)
}

// values returns what stands in place of p.
func (p part) values(n int, values []string) (out []string) {
	if p.what == "#" {
		return []string{strconv.Itoa(n)}
	}
	if p.list > 0 {
		values = values[p.list-1 : p.list]
	}
	for _, value := range values {
		out = append(out, change(value, p.what))
	}
	return out
}

var extension = regexp.MustCompile(`\.[^/.]*$`)

// change returns a part of a name: "." all but its extension, "/" the name without its folder, "//" its
// folder, "/." the name without folder and extension.
func change(name, what string) string {
	base := name[strings.LastIndexByte(name, '/')+1:]
	switch what {
	case ".":
		return extension.ReplaceAllString(name, "")
	case "/":
		return base
	case "//":
		return path.Dir(name)
	case "/.":
		return extension.ReplaceAllString(base, "")
	}
	return name
}
