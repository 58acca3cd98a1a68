package engine

import (
	"context"
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

// Diff compares the objects that query lists (kind, name and definition) with those that should exist, whose
// definitions want holds by "kind name". Of the objects that should not exist it returns triggers only.
func Diff(ctx context.Context, s *Session, query string, want map[string]string) (diff []Object, err error) {
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
		if ok && original != definition || !ok && kind == "trigger" {
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
