package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

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
			if found = v.values(f.Names()[0]); len(found) == 0 {
				found = p.names(l, namesOfFlag[f.Names()[0]], last)
			}
		}
		return found
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
	switch {
	case strings.HasPrefix(v.Args, "JOB"):
		return p.names(l, JobNames, last)
	case len(l.args) == 1 && slices.Contains(v.NamedActions, l.args[0]):
		return p.names(l, ScheduleNames, last)
	case len(l.args) > 0 && v.NamedActions != nil:
		return nil
	}
	return v.values("")
}

// What [Program.Names] gives the names of.
const (
	QueueNames    = "queues"
	ScheduleNames = "schedules"
	WorkerNames   = "workers"
	JobNames      = "jobs"
)

// namesOfFlag says of what sort of thing the value of a flag is the name.
var namesOfFlag = map[string]string{"queue": QueueNames, "worker": WorkerNames, "job": JobNames,
	"after": JobNames, "before": JobNames}

// NamesWithin is how long TAB may take. Tests set it.
var NamesWithin = 200 * time.Millisecond

// names returns the names of what, in the ledger of l, as far as they come in time.
func (p *Program) names(l line, what, last string) [][2]string {
	if what == "" || p.Names == nil {
		return nil
	}
	p.DB = cmp.Or(os.Getenv("JOBLEDGER_DB"), findDB())
	for _, word := range l.globals {
		if db, ok := strings.CutPrefix(word, "--db="); ok {
			p.DB = db
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), NamesWithin)
	defer cancel()
	answer := make(chan [][2]string, 1)
	go func() { answer <- p.Names(ctx, what, last) }()
	select {
	case found := <-answer:
		return found
	case <-ctx.Done():
		return nil
	}
}

// values returns v's completions for the value of flag, or for an argument if flag is empty.
func (v Verb) values(flag string) [][2]string {
	return words.Of(v.Complete[flag], func(value string) [2]string { return [2]string{value, ""} })
}
