package differ

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// queueFields are the columns of the table queues after its key.
var queueFields = [...]string{"paused", "since", "actor", "reason"}

type queueRow [len(queueFields)]any

// Queue is a defect of a row of queues: the whole row, or one field.
type Queue struct {
	Number int64 // the row's
	Name   string
	Field  string // "": the whole row
	Detail string
}

// Queues compares the rows of queues with the fold, in the order of their numbers.
func Queues(ctx context.Context, tx *ledger.Tx, folded map[string]projection.Queue) (
	found []Queue, err error) {
	want, names, err := queueRows(ctx, tx, folded)
	if err != nil {
		return nil, err
	}
	stored, err := storedQueues(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, n := range sortedKeys(want) {
		got, ok := stored[n]
		if !ok {
			found = append(found, Queue{Number: n, Name: names[n],
				Detail: "it has no row in the table queues"})
			continue
		}
		for i, field := range queueFields {
			if got[i] != want[n][i] {
				found = append(found, Queue{n, names[n], field, Contradiction(field, got[i], want[n][i])})
			}
		}
		delete(stored, n)
	}
	for _, n := range sortedKeys(stored) {
		d := Queue{Number: n, Name: fmt.Sprint("number ", n),
			Detail: "its row in the table queues belongs to no event"}
		if name, err := tx.NameOf(ctx, n); err == nil {
			d.Name = name
		}
		found = append(found, d)
	}
	return found, nil
}

// queueRows returns the rows that folded should have, and the names of the queues, by number.
func queueRows(ctx context.Context, tx *ledger.Tx, folded map[string]projection.Queue) (
	rows map[int64]queueRow, names map[int64]string, err error) {
	rows, names = make(map[int64]queueRow), make(map[int64]string)
	for name, q := range folded {
		n, err := tx.Name(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		actor, err := tx.Name(ctx, q.Actor)
		if err != nil {
			return nil, nil, err
		}
		paused := int64(0)
		if q.Paused {
			paused = 1
		}
		rows[n], names[n] = queueRow{paused, event.Micros(q.Since), actor, table.Text(q.Reason)}, name
	}
	return rows, names, nil
}

// storedQueues returns the rows of queues by number.
func storedQueues(ctx context.Context, tx *ledger.Tx) (map[int64]queueRow, error) {
	rows, err := tx.Query(ctx, `SELECT queue, paused, since, actor, reason FROM queues`)
	stored := make(map[int64]queueRow)
	var n int64
	var r queueRow
	err = table.Each(rows, err, []any{&n, &r[0], &r[1], &r[2], &r[3]}, func() error {
		stored[n] = r
		return nil
	})
	return stored, err
}
