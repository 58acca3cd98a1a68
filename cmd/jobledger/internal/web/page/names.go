package page

import (
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/view"
)

// maxNames is how many names of one key a page offers.
const maxNames = 200

// names are what the fields of a search offer. The queues, workers and codes are those that the overview
// shows now.
type names struct {
	Terms  []string // with their keys, as a search has them
	Queues []string
	Errors []string
}

// namesOf are the names that are known from f.
func namesOf(f view.Figures) (n names) {
	var workers []string
	for _, q := range f.Queues {
		n.Queues = append(n.Queues, q.Name)
	}
	for _, w := range f.Workers {
		workers = append(workers, w.Name)
	}
	for _, c := range f.Codes.List {
		if c.Code != "" {
			n.Errors = append(n.Errors, c.Code)
		}
	}
	n.Queues, n.Errors = distinct(n.Queues), distinct(n.Errors)
	n.add("queue", n.Queues)
	n.add("state", find.StateNames())
	n.add("worker", distinct(workers))
	n.add("error", n.Errors)
	n.add("kind", find.KindNames())
	for _, key := range find.FindKeys {
		if !slices.Contains([]string{"queue", "state", "worker", "error", "kind"}, key) {
			n.Terms = append(n.Terms, key+":")
		}
	}
	return n
}

// add adds terms of key. No term has a quotation mark.
func (n *names) add(key string, values []string) {
	for _, value := range values {
		switch {
		case strings.Contains(value, `"`):
			continue
		case strings.ContainsAny(value, " \t\r\n"):
			value = `"` + value + `"`
		}
		n.Terms = append(n.Terms, key+":"+value)
	}
}

// distinct are values in order, each once.
func distinct(values []string) []string {
	slices.Sort(values)
	values = slices.Compact(values)
	return values[:min(len(values), maxNames)]
}
