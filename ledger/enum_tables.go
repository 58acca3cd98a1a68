package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// wordTable is a table that says in words what the numbers in other tables mean, for the views: this program has the
// words of its own. No guard protects these tables, so that they are compared.
type wordTable struct {
	name, column string
	words        map[int64]string
}

func wordTables() []wordTable {
	kinds := wordTable{"kinds", "kind", make(map[int64]string)}
	for _, k := range Kinds() {
		kinds.words[int64(k)] = k.String()
	}
	states := wordTable{"states", "state", make(map[int64]string)}
	for _, s := range States() {
		states.words[int64(s)] = s.String()
	}
	return []wordTable{kinds, states}
}

// differing returns what the table of the file has otherwise, in sentences; nothing if there is no such table.
func (w wordTable) differing(ctx context.Context, tx *Tx) (problems []string, err error) {
	there, err := tx.store.engine.hasTable(ctx, tx, w.name)
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

// mend makes the table of the file say what it should, and reports whether it did not.
func (w wordTable) mend(ctx context.Context, tx *Tx) (mended bool, err error) {
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
