package cli

import "github.com/xrash/smetrics"

// unknownCommand is the error for word, with the most similar command as a hint.
func unknownCommand(word string, verbs []Verb) error {
	var names []string
	for _, v := range verbs {
		names = append(names, v.Name)
	}
	err := Usagef("unknown command %q", word)
	if word == topicsWord {
		return WithHint(err, "did you mean '%s help %s'?", ProgramName, topicsWord)
	}
	if near := Nearest(word, names); near != "" {
		return WithHint(err, "did you mean '%s %s'?", ProgramName, near)
	}
	return WithHint(err, "%s", SeeHelp(""))
}

// Nearest returns the candidate most similar to word, or "" if none is similar.
func Nearest(word string, candidates []string) string {
	const near = 0.85 // "enqeue" 0.96, "stats" for "status" 0.97, "foo" for "for" 0.82
	best, found := near, ""
	for _, c := range candidates {
		if score := smetrics.JaroWinkler(word, c, 0.7, 4); score >= best {
			best, found = score, c
		}
	}
	return found
}
