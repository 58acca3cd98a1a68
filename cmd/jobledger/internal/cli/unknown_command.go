package cli

import (
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
)

// unknownCommand is the error for word, with the most similar command as a hint.
func unknownCommand(word string, verbs []Verb) error {
	names := words.Of(verbs, Verb.name)
	err := Usagef("unknown command %q", word)
	if word == topicsWord {
		return WithHint(err, "did you mean '%s help %s'?", ProgramName, topicsWord)
	}
	if near := fault.Nearest(word, names); near != "" {
		return WithHint(err, "did you mean '%s %s'?", ProgramName, near)
	}
	return WithHint(err, "%s", SeeHelp(""))
}
