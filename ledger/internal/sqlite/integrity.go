package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"strings"

	"jobledger/ledger/internal/engine"
)

// Integrity runs PRAGMA integrity_check.
func (f *Engine) Integrity(ctx context.Context, s *engine.Session) (problems []string, err error) {
	return integrityCheck(ctx, s, `PRAGMA integrity_check`)
}

func integrityCheck(ctx context.Context, s *engine.Session, pragma string) (problems []string, err error) {
	err = each(ctx, s, func(row []driver.Value) {
		if line := fmt.Sprint(row[0]); line != "ok" {
			problems = append(problems, line)
		}
	}, pragma)
	return problems, err
}

// each runs a query and calls fn for each row.
func each(ctx context.Context, s *engine.Session, fn func(row []driver.Value), query string,
	args ...any) error {
	rows, err := s.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		fn(rows.Values())
	}
	return rows.Err()
}

// IntegrityInSteps runs PRAGMA quick_check, which checks all pages and rows, but not the indexes against
// their tables. That it does apart, table by table: for events, the largest, by sums, and for the others by
// PRAGMA integrity_check.
func (f *Engine) IntegrityInSteps(ctx context.Context, tail int64,
	read func(func(*engine.Session) error) error) (
	problems []string, err error) {
	var indexes []eventIndex
	check := func(pragma string) func(*engine.Session) error {
		return func(s *engine.Session) error {
			found, err := integrityCheck(ctx, s, pragma)
			problems = append(problems, found...)
			return err
		}
	}
	steps := []func(*engine.Session) error{check(`PRAGMA quick_check`)}
	for _, table := range ourTables {
		if table != "events" {
			steps = append(steps, check(`PRAGMA integrity_check(`+table+`)`))
		}
	}
	plain := true
	steps = append(steps, func(s *engine.Session) (err error) {
		indexes, plain, err = indexesOfEvents(ctx, s)
		return err
	})
	for _, step := range steps {
		if err := read(step); err != nil || len(problems) > 0 {
			return problems, err
		}
	}
	if !plain {
		return problems, read(check(`PRAGMA integrity_check(events)`))
	}
	return compareIndexes(ctx, indexes, tail, read)
}

// eventIndex is an index on columns of events.
type eventIndex struct {
	name    string
	columns []string
	where   string // of a partial index; "1" for all rows
}

// indexesOfEvents returns the indexes on events; plain is false if one is on anything but integer columns.
func indexesOfEvents(ctx context.Context, s *engine.Session) (indexes []eventIndex, plain bool, err error) {
	const query = `SELECT l.name, coalesce(x.sql, ''), i.name, t.type
FROM pragma_index_list('events') l JOIN pragma_index_info(l.name) i
LEFT JOIN sqlite_schema x ON x.type = 'index' AND x.name = l.name
LEFT JOIN pragma_table_info('events') t ON t.name = i.name ORDER BY l.name, i.seqno`
	plain = true
	err = each(ctx, s, func(row []driver.Value) {
		name, definition := fmt.Sprint(row[0]), fmt.Sprint(row[1])
		if len(indexes) == 0 || indexes[len(indexes)-1].name != name {
			_, where, partial := strings.Cut(definition, " WHERE ")
			if !partial {
				where = "1"
			}
			indexes = append(indexes, eventIndex{name: name, where: where})
		}
		x := &indexes[len(indexes)-1]
		x.columns = append(x.columns, fmt.Sprint(row[2]))
		plain = plain && row[3] == "INTEGER"
	}, query)
	return indexes, plain, err
}

// sum is an expression that adds up a number for each entry, which depends on all its values and on random
// factors. A different entry makes a different sum, but for one case in two thousand million.
func (x eventIndex) sum() string {
	const modulus, most int64 = 1<<31 - 1, 1<<40 - 87        // primes; no sum of products exceeds 64 bits
	factor := func() int64 { return 1 + rand.Int64N(1<<20) } // #nosec G404 -- no secret
	terms := []string{fmt.Sprintf("pos * %d", factor())}
	for _, column := range x.columns {
		terms = append(terms, fmt.Sprintf("coalesce(%s, -1) %% %d * %d", engine.Quoted(column), most, factor()))
	}
	return fmt.Sprintf("coalesce(sum((%s) %% %d), 0)", strings.Join(terms, " + "), modulus)
}

// compareIndexes compares each index with the table, of the events up to the one at tail.
func compareIndexes(ctx context.Context, indexes []eventIndex, tail int64,
	read func(func(*engine.Session) error) error) (problems []string, err error) {
	var sums, ofTable []string
	for _, x := range indexes {
		sum := x.sum()
		sums = append(sums, sum)
		ofTable = append(ofTable, fmt.Sprintf("count(*) FILTER (WHERE %s), %s", x.where,
			strings.Replace(sum, "), 0)", fmt.Sprintf(") FILTER (WHERE %s), 0)", x.where), 1)))
	}
	var want []driver.Value
	row := func(into *[]driver.Value, query string) error {
		return read(func(s *engine.Session) error {
			return each(ctx, s, func(row []driver.Value) { *into = append(*into, row...) }, query, tail)
		})
	}
	err = row(&want, `SELECT `+strings.Join(ofTable, ", ")+` FROM events NOT INDEXED WHERE pos <= ?`)
	for i, x := range indexes {
		if err != nil {
			break
		}
		var got []driver.Value
		err = row(&got, fmt.Sprintf(`SELECT count(*), %s FROM events INDEXED BY %s WHERE pos <= ? AND (%s)`,
			sums[i],
			engine.Quoted(x.name), x.where))
		if err == nil && (got[0] != want[2*i] || got[1] != want[2*i+1]) {
			problems = append(problems, fmt.Sprintf("index %s: its %v entries are not those of the %v rows of events",
				x.name, got[0], want[2*i]))
		}
	}
	return problems, err
}
