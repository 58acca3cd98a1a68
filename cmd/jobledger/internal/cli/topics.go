package cli

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"regexp"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
)

// topicsWord as the argument of help lists the topics.
const topicsWord = "topics"

// Topic is one page of the documentation, docs/NAME.md. Its first line is "# Title: summary".
type Topic struct {
	Name    string `json:"topic"`
	Summary string `json:"summary"`
	Text    string `json:"text,omitempty"` // Markdown, with the first line
}

// Topics returns every page of p.Docs, by name.
func (p *Program) Topics() ([]Topic, error) {
	if p.Docs == nil {
		return nil, nil
	}
	files, err := fs.Glob(p.Docs, "docs/*.md")
	if err != nil {
		return nil, fmt.Errorf("read the topics: %w", err)
	}
	var all []Topic
	for _, file := range files {
		text, err := fs.ReadFile(p.Docs, file)
		if err != nil {
			return nil, fmt.Errorf("read a topic: %w", err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		_, summary, _ := strings.Cut(first, ": ")
		all = append(all, Topic{Name: strings.TrimSuffix(path.Base(file), ".md"), Summary: summary,
			Text: string(text)})
	}
	return all, nil
}

// TopicRows are topics as pairs of name and summary, for help, the manual page and completion.
func TopicRows(topics []Topic) [][2]string {
	return words.Of(topics, func(t Topic) [2]string { return [2]string{t.Name, t.Summary} })
}

// HelpTopic prints the page named, or for "topics" a line for each page. A name that is neither a command nor
// a topic is an error with the nearest of both.
func (p *Program) HelpTopic(name string, verbs []Verb) error {
	topics, err := p.Topics()
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
	names := append([]string{topicsWord}, words.Of(verbs, Verb.name)...)
	names = append(names, words.Of(topics, func(t Topic) string { return t.Name })...)
	err = Usagef("unknown command or topic %q", name)
	if near := fault.Nearest(name, names); near != "" {
		return WithHint(err, "did you mean '%s help %s'?", ProgramName, near)
	}
	if about := pagesAbout(name, topics); len(about) > 0 {
		return WithHint(err, "these pages have most about it, for '%s help': %s", ProgramName,
			strings.Join(about, ", "))
	}
	return WithHint(err, "'%s help %s' lists the commands, '%s help %s' the topics", ProgramName,
		allWord, ProgramName, topicsWord)
}

// pagesAbout returns up to three pages that have the word, if one has it in a title: such pages first, and
// then those that have it most often.
func pagesAbout(word string, topics []Topic) (names []string) {
	pattern := regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(word) + `(e?s)?\b`)
	title := regexp.MustCompile(`(?im)^#.*\b` + regexp.QuoteMeta(word) + `(e?s)?\b`)
	rank := func(t Topic) int {
		return 1000*len(title.FindAllString(t.Text, -1)) + len(pattern.FindAllString(t.Text, -1))
	}
	topics = slices.Clone(topics)
	slices.SortStableFunc(topics, func(a, b Topic) int { return rank(b) - rank(a) })
	if len(topics) == 0 || rank(topics[0]) < 1000 {
		return nil
	}
	for _, t := range topics[:min(3, len(topics))] {
		if rank(t) > 0 {
			names = append(names, t.Name)
		}
	}
	return names
}

// listTopics prints one line per topic.
func (p *Program) listTopics(topics []Topic) error {
	if !p.JSON {
		p.writeRows(p.Stdout, TopicRows(topics), 0)
		return nil
	}
	for _, t := range topics {
		t.Text = ""
		if err := json.NewEncoder(p.Stdout).Encode(t); err != nil {
			return err
		}
	}
	return nil
}

// showTopic prints one page. On a terminal it goes through a pager where there is one.
func (p *Program) showTopic(t Topic) error {
	if p.JSON {
		return json.NewEncoder(p.Stdout).Encode(t)
	}
	if command := Pager(); p.StdoutTerminal && command != nil {
		if err := p.Flush(); err != nil {
			return err
		}
		interrupts := make(chan os.Signal, 1) // an interrupt is for the pager; ending now would leave it alone
		signal.Notify(interrupts, os.Interrupt)
		defer signal.Stop(interrupts)
		command.Stdin, command.Stdout, command.Stderr = strings.NewReader(t.Text), os.Stdout, os.Stderr
		if command.Run() == nil {
			return nil
		} // else the pager failed: print the page without it
	}
	_, err := p.Stdout.WriteString(t.Text)
	return err
}
