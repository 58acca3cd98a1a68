package jobfilter

import (
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/event"
)

// KindNames returns the names of all kinds of events.
func KindNames() (names []string) {
	for _, k := range event.Kinds() {
		names = append(names, k.String())
	}
	return names
}

// EventKinds returns the kinds of events that words select; none: all. A word is a kind, or - and a kind that
// is left out. Where no word is a kind, all others are selected.
func EventKinds(words []string) (kinds []event.Kind, err error) {
	var out []event.Kind
	for _, word := range words {
		name, not := strings.CutPrefix(word, "-")
		k, err := event.ParseKind(name)
		switch {
		case err != nil:
			return nil, cli.WithHint(cli.Usagef("--kind: there is no kind %q", name), "the kinds are %s",
				strings.Join(KindNames(), ", "))
		case not:
			out = append(out, k)
		default:
			kinds = append(kinds, k)
		}
	}
	if len(out) == 0 {
		return kinds, nil
	}
	if len(kinds) == 0 {
		kinds = event.Kinds()
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k event.Kind) bool { return slices.Contains(out, k) })
	if len(kinds) == 0 {
		return nil, cli.Usagef("--kind: no kind is left")
	}
	return kinds, nil
}
