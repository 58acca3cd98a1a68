package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"jobledger/ledger/event"
)

// enumTable is a table that names the numbers in other tables, for the views. The program itself does not
// read it, and no trigger protects it, so it is compared.
type enumTable struct {
	name, column string
	words        map[int64]string
}

func enumTables() []enumTable {
	kinds := enumTable{"kinds", "kind", make(map[int64]string)}
	for _, k := range event.Kinds() {
		kinds.words[int64(k)] = k.String()
	}
	states := enumTable{"states", "state", make(map[int64]string)}
	for _, s := range event.States() {
		states.words[int64(s)] = s.String()
	}
	return []enumTable{kinds, states}
}

// differing returns the differences of the stored table, in sentences; none if there is no such table.
func (w enumTable) differing(ctx context.Context, tx *Tx) (problems []string, err error) {
	if err := tx.flush(); err != nil {
		return nil, err
	}
	there, err := tx.store.engine.HasTable(tx.queryContext(ctx), tx.session.Session, w.name)
	if err != nil || !there {
		return nil, err
	}
	rows, err := tx.Query(ctx, `SELECT n, `+w.column+` FROM `+w.name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	missing := maps.Clone(w.words)
	for rows.Next() {
		var n int64
		var word string
		if err := rows.Scan(&n, &word); err != nil {
			return nil, err
		}
		want, known := w.words[n]
		switch {
		case !known:
			problems = append(problems, fmt.Sprintf("table %s has a word too many: %d, %.40q", w.name, n, word))
		case word != want:
			problems = append(problems, fmt.Sprintf("table %s calls %d %.40q instead of %q", w.name, n, word, want))
		}
		delete(missing, n)
	}
	for _, n := range slices.Sorted(maps.Keys(missing)) {
		problems = append(problems, fmt.Sprintf("table %s lacks %d, %q", w.name, n, w.words[n]))
	}
	return problems, rows.Err()
}

// repair corrects the stored table, and reports whether that was necessary.
func (w enumTable) repair(ctx context.Context, tx *Tx) (repaired bool, err error) {
	problems, err := w.differing(ctx, tx)
	if err != nil || len(problems) == 0 {
		return false, err
	}
	if _, err := tx.Exec(`DELETE FROM ` + w.name); err != nil {
		return false, err
	}
	for n, word := range w.words {
		if _, err := tx.Exec(`INSERT INTO `+w.name+` (n, `+w.column+`) VALUES (?, ?)`, n, word); err != nil {
			return false, err
		}
	}
	return true, nil
}
