package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Object is a table, index, trigger, view or function that is not as the schema has it.
type Object struct {
	Kind, Name string
	Present    bool
	Is, Want   string // its definition; "" for one that is missing, or that should not exist
}

// String says what is wrong with o.
func (o Object) String() string {
	switch {
	case !o.Present:
		return fmt.Sprintf("%s %s is missing", o.Kind, o.Name)
	case o.Want == "":
		return fmt.Sprintf("%s %s is not part of the schema", o.Kind, o.Name)
	}
	return fmt.Sprintf("%s %s was altered", o.Kind, o.Name)
}

// Altered returns ErrAltered, with the objects by name, if a write could go wrong because of the objects in
// diff.
func Altered(diff []Object) error {
	if text := AlteredText(diff); text != "" {
		return fmt.Errorf("%w: %s; nothing is written until it is repaired", ErrAltered, text)
	}
	return nil
}

// AlteredText names the objects in diff because of which a write could go wrong; "" if there are none. No
// write reads a view.
func AlteredText(diff []Object) string {
	var texts []string
	for _, o := range diff {
		if o.Kind != "view" {
			texts = append(texts, o.String())
		}
	}
	const most = 3
	if n := len(texts) - most; n > 1 {
		texts = append(texts[:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, ", ")
}

// Diff compares the objects that query lists (kind, name and definition) with those that should exist, whose
// definitions want holds by "kind name". Of the objects that should not exist it returns those that foreign
// accepts.
func Diff(ctx context.Context, s *Session, query string, want map[string]string,
	foreign func(kind, definition string) bool) (diff []Object, err error) {
	want = maps.Clone(want)
	rows, err := s.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, name, definition string
		if err := rows.Scan(&kind, &name, &definition); err != nil {
			return nil, err
		}
		original, ok := want[kind+" "+name]
		if ok && original != definition || !ok && foreign(kind, definition) {
			diff = append(diff, Object{Kind: kind, Name: name, Present: true, Is: definition, Want: original})
		}
		delete(want, kind+" "+name)
	}
	for key, definition := range want {
		kind, name, _ := strings.Cut(key, " ")
		diff = append(diff, Object{Kind: kind, Name: name, Want: definition})
	}
	slices.SortFunc(diff, func(a, b Object) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) })
	return diff, rows.Err()
}

// Quoted returns a name as an identifier of SQL.
func Quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
