package page

import (
	"fmt"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/frame"
)

// sameAs is the command line that does the same as m; "" if there is none. It selects the jobs that existed
// at the position of m, in their states when it runs.
func sameAs(m act.Many, filter []frame.Param, spread string) string {
	words := []string{m.Verb}
	if len(m.Jobs) > maxLinked {
		return ""
	}
	for _, j := range m.Jobs {
		words = append(words, string(j.ID))
	}
	if len(m.Jobs) == 0 {
		flags, ok := filterWords(filter)
		if !ok {
			return ""
		}
		if words = append(words, flags...); !hasName(filter, "to") {
			words = append(words, fmt.Sprintf("--to=pos:%d", m.Pos))
		}
	}
	if m.Verb == "reschedule" {
		words = append(words, "--run-at=now")
	}
	if spread != "" && len(m.Jobs) > 0 {
		return "" // the delays of jobs that are named one by one have no flag
	}
	if spread != "" {
		words = append(words, "--spread="+spread)
	}
	reason := m.Reason
	if reason == "" {
		reason = "…"
	}
	return frame.CommandOf(append(words, "--reason="+reason))
}

// termNames are the parameters that the verbs for many jobs have as terms of --find alone, or there more than
// once.
var termNames = []string{"queue", "state", "key"}

// filterWords are the flags of a filter of the page of jobs; ok is false where no flags say the same.
func filterWords(filter []frame.Param) (words []string, ok bool) {
	finder := ""
	for _, one := range filter {
		if one.Name == "find" {
			finder = one.Value
		}
	}
	terms, err := find.Terms(finder)
	if finder != "" && err != nil {
		return nil, false
	}
	for _, one := range filter {
		switch {
		case one.Name == "find":
		case !slices.Contains(termNames, one.Name):
			words = append(words, "--"+fault.FlagOf(one.Name)+"="+one.Value)
		case strings.Contains(one.Value, `"`), slices.ContainsFunc(terms, func(t find.Term) bool {
			return t.Key == one.Name && !t.Not // another value would be one more that may be
		}):
			return nil, false
		default:
			finder += ` ` + one.Name + `:"` + one.Value + `"`
			if strings.Trim(one.Value, frame.PlainLetters) == "" {
				finder = strings.TrimSuffix(finder, `"`+one.Value+`"`) + one.Value
			}
		}
	}
	if finder != "" {
		words = append(words, "--find="+strings.TrimSpace(finder))
	}
	return words, true
}

func hasName(params []frame.Param, name string) bool {
	return slices.ContainsFunc(params, func(p frame.Param) bool { return p.Name == name })
}
