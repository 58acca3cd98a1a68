package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"jobledger/ledger/event"
)

// EnumTable is a table that names the numbers in other tables, for the views. The program itself does not
// read it, and no trigger protects it, so it is compared.
type EnumTable struct {
	Name, Column string
	Words        map[int64]string
}

// EnumTables returns the tables of kinds and states as they should be.
func EnumTables() []EnumTable {
	kinds := EnumTable{Name: "kinds", Column: "kind", Words: make(map[int64]string)}
	for _, k := range event.Kinds() {
		kinds.Words[int64(k)] = k.String()
	}
	states := EnumTable{Name: "states", Column: "state", Words: make(map[int64]string)}
	for _, s := range event.States() {
		states.Words[int64(s)] = s.String()
	}
	return []EnumTable{kinds, states}
}

// Differing returns the differences of the stored table, in sentences; none if there is no such table.
func (w EnumTable) Differing(ctx context.Context, e Engine, s *Session) (problems []string, err error) {
	there, err := e.HasTable(ctx, s, w.Name)
	if err != nil || !there {
		return nil, err
	}
	rows, err := s.Query(ctx, `SELECT n, `+w.Column+` FROM `+w.Name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	missing := maps.Clone(w.Words)
	for rows.Next() {
		var n int64
		var word string
		if err := rows.Scan(&n, &word); err != nil {
			return nil, err
		}
		want, known := w.Words[n]
		switch {
		case !known:
			problems = append(problems, fmt.Sprintf("table %s has a word too many: %d, %.40q", w.Name, n, word))
		case word != want:
			problems = append(problems, fmt.Sprintf("table %s calls %d %.40q instead of %q", w.Name, n, word, want))
		}
		delete(missing, n)
	}
	for _, n := range slices.Sorted(maps.Keys(missing)) {
		problems = append(problems, fmt.Sprintf("table %s lacks %d, %q", w.Name, n, w.Words[n]))
	}
	return problems, rows.Err()
}

// Repair makes the stored table again.
func (w EnumTable) Repair(s *Session) error {
	if _, err := s.Exec(`DELETE FROM ` + w.Name); err != nil {
		return err
	}
	for n, word := range w.Words {
		if _, err := s.Exec(`INSERT INTO `+w.Name+` (n, `+w.Column+`) VALUES (?, ?)`, n, word); err != nil {
			return err
		}
	}
	return nil
}
