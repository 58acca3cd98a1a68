package cli

import (
	"fmt"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/words"
)

// completeWord as the first word asks for the words that may follow the ones after it. The scripts for shells
// use it. The scripts of the parser's library are not used: they pass the half-typed line to eval, so a
// $(command) in it would run when TAB is pressed, and they offer no global flag after a command.
const completeWord = "__complete"

// complete prints the completions of the last of words (which may be empty), one a line, with a description
// after a tab. If it prints none, the shell offers files.
func (p *Program) complete(verbs []Verb, texts []string) error {
	if len(texts) == 0 {
		texts = []string{""}
	}
	last := texts[len(texts)-1]
	for _, c := range p.candidates(verbs, texts) {
		if strings.HasPrefix(c[0], last) {
			if _, err := fmt.Fprintf(p.Stdout, "%s\t%s\n", c[0], words.Escape(c[1])); err != nil {
				return err
			}
		}
	}
	return nil
}

// candidates returns pairs of a word and its description.
func (p *Program) candidates(verbs []Verb, words []string) (found [][2]string) {
	before, last := words[:len(words)-1], words[len(words)-1]
	if slices.Contains(before, "--") {
		return nil
	}
	globals := GlobalFlags("")
	l, err := normalize(before, globals, verbs)
	var v Verb
	if i := slices.IndexFunc(verbs, func(v Verb) bool { return v.Name == l.verb }); i >= 0 {
		v = verbs[i]
	}
	if err != nil {
		// The line breaks off at a flag that still wants its value: offer what the verb knows for it.
		if f, _ := lookUp(strings.TrimLeft(before[len(before)-1], "-"), v.Flags, nil); f != nil {
			return v.values(f.Names()[0])
		}
		return nil
	}
	switch {
	case strings.HasPrefix(last, "-"):
		for _, f := range slices.Concat(v.Flags, globals) {
			d, ok := f.(urfave.DocGenerationFlag)
			if visible, is := f.(urfave.VisibleFlag); is && !visible.IsVisible() {
				continue
			}
			if ok {
				found = append(found, [2]string{"--" + f.Names()[0], strings.ReplaceAll(d.GetUsage(), "`", "")})
			}
		}
		return append(found, [2]string{"--help", "show help"})
	case l.verb == "" || l.verb == "help":
		for _, v := range verbs {
			if v.Group != "" {
				found = append(found, [2]string{v.Name, v.Usage})
			}
		}
		if l.verb == "help" {
			topics, _ := p.Topics() // embedded; without them there is less to offer
			found = append(found, [2]string{allWord, "list every command"})
			found = append(found, [2]string{topicsWord, "list the pages of the documentation"})
			found = append(found, TopicRows(topics)...)
		}
		return found
	}
	return v.values("")
}

// values returns v's completions for the value of flag, or for an argument if flag is empty.
func (v Verb) values(flag string) [][2]string {
	return words.Of(v.Complete[flag], func(value string) [2]string { return [2]string{value, ""} })
}
