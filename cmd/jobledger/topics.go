package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

//go:embed docs/*.md
var docs embed.FS

// topicsWord as the argument of help lists the topics.
const topicsWord = "topics"

// topic is one page of the documentation: docs/NAME.md. Its first line is "# Title: summary".
type topic struct {
	Name    string `json:"topic"`
	Summary string `json:"summary"`
	Text    string `json:"text,omitempty"` // Markdown, with the first line
}

// readTopics returns every page, by name.
func readTopics() ([]topic, error) {
	files, err := docs.ReadDir("docs")
	if err != nil {
		return nil, fmt.Errorf("read the topics: %w", err)
	}
	var all []topic
	for _, file := range files {
		text, err := docs.ReadFile("docs/" + file.Name())
		if err != nil {
			return nil, fmt.Errorf("read a topic: %w", err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		_, summary, _ := strings.Cut(first, ": ")
		all = append(all, topic{Name: strings.TrimSuffix(file.Name(), ".md"), Summary: summary, Text: string(text)})
	}
	return all, nil
}

// topicRows are the topics as pairs of name and summary, for help, the manual page and completion.
func topicRows(topics []topic) (rows [][2]string) {
	for _, t := range topics {
		rows = append(rows, [2]string{t.Name, t.Summary})
	}
	return rows
}

// listTopics prints one line per topic.
func (p *program) listTopics(topics []topic) error {
	if !p.json {
		p.writeRows(p.stdout, topicRows(topics), 0)
		return nil
	}
	for _, t := range topics {
		t.Text = ""
		if err := json.NewEncoder(p.stdout).Encode(t); err != nil {
			return err
		}
	}
	return nil
}

// showTopic prints one page. On a terminal it goes through a pager where there is one.
func (p *program) showTopic(t topic) error {
	if p.json {
		return json.NewEncoder(p.stdout).Encode(t)
	}
	if command := pager(); p.stdoutTerminal && command != nil {
		if err := p.flush(); err != nil {
			return err
		}
		command.Stdin, command.Stdout, command.Stderr = strings.NewReader(t.Text), os.Stdout, os.Stderr
		if command.Run() == nil {
			return nil
		} // else the pager cannot be run: print the page without it
	}
	_, err := p.stdout.WriteString(t.Text)
	return err
}

// pager returns the command that $PAGER names, else less; nil if there is none or $PAGER is set to nothing.
func pager() *exec.Cmd {
	words := []string{"less"}
	if value, isSet := os.LookupEnv("PAGER"); isSet {
		words = strings.Fields(value)
	}
	if len(words) == 0 {
		return nil
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return nil
	}
	command := exec.Command(path, words[1:]...) // #nosec G204 -- the user's own pager; no shell reads it
	command.Env = os.Environ()
	if _, isSet := os.LookupEnv("LESS"); !isSet {
		command.Env = append(command.Env, "LESS=FRX") // end if it fits on one screen, keep it on the screen
	}
	return command
}
