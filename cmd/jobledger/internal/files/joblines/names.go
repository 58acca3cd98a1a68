package joblines

import (
	"encoding/json"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/commands"
	"jobledger/ledger/event"
)

// Names has the jobs of the lines by the names that the lines give them with ref. They are known within the
// file only.
type Names struct {
	byName map[string]*named
	byID   map[string]*named // by the id asked for
}

type named struct{ id event.JobID }

// NewNames returns the Names of no lines.
func NewNames() *Names { return &Names{make(map[string]*named), make(map[string]*named)} }

// add gives e an id, and notes it under name.
func (n *Names) add(e *commands.Enqueue, name string) error {
	switch {
	case n == nil:
		return fault.Usagef("ref is not possible here")
	case strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || c == ':' }):
		return fault.Usagef("ref: %.60q has a character that a ref cannot have: it takes printable ASCII, "+
			"but no space and no colon", name)
	case n.byName[name] != nil:
		return fault.Usagef("ref: an earlier line is %q too", name)
	}
	e.ID = ulid.Make().String()
	one := &named{event.JobID(e.ID)}
	n.byName[name], n.byID[e.ID] = one, one
	return nil
}

// Found notes the ids that the jobs of c turned out to have: a job with a key may have been there already.
func (n *Names) Found(c Chunk, answers []commands.Enqueued) {
	for i, e := range c.Jobs {
		if one := n.byID[e.ID]; one != nil {
			one.id = answers[i].ID
		}
	}
}

// dependencies reads a list of jobs, each by the name that an earlier line has given it, or by its id.
func (r Reader) dependencies(key string, value json.RawMessage) (list []commands.Dependency, err error) {
	var texts []string
	if json.Unmarshal(value, &texts) != nil {
		return nil, fault.Usagef("%s: %s is not a list of strings", key, brief(value))
	}
	for _, text := range texts {
		name, _, _ := strings.Cut(text, ":")
		if r.Names != nil && r.Names.byName[name] != nil {
			text = string(r.Names.byName[name].id) + strings.TrimPrefix(text, name)
		}
		id, on, err := event.ParseReference(text)
		if err != nil {
			return nil,
				fault.Usagef("%s: %.60q is neither the ref of an earlier line nor the id of a job, with :failed or "+
					":finished behind it where that is meant", key, text)
		}
		list = append(list, commands.Dependency{Job: id, On: on})
	}
	return list, nil
}
