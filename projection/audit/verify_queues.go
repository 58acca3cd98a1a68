package audit

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// queueFields are the columns of the table queues behind its first.
var queueFields = [...]string{"paused", "since", "actor", "reason"}

type queueRow [len(queueFields)]any

// differingQueue is a row of queues that is not what the events say.
type differingQueue struct {
	number        int64 // the row's
	queue         string
	field, detail string
}

// differingQueues compares the rows of queues as they are stored with folded, by number.
func differingQueues(ctx context.Context, tx *ledger.Tx, folded map[string]projection.Queue) (found []differingQueue, err error) {
	want, names := make(map[int64]queueRow), make(map[int64]string)
	for name, q := range folded {
		n, err := tx.Name(ctx, name)
		if err != nil {
			return nil, err
		}
		actor, err := tx.Name(ctx, q.Actor)
		if err != nil {
			return nil, err
		}
		paused := int64(0)
		if q.Paused {
			paused = 1
		}
		names[n] = name
		want[n] = queueRow{paused, ledger.Micros(q.Since), actor, table.Text(q.Reason)}
	}
	rows, err := tx.Query(ctx, `SELECT queue, paused, since, actor, reason FROM queues`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	stored := make(map[int64]queueRow)
	for rows.Next() {
		var n int64
		var r queueRow
		if err := rows.Scan(&n, &r[0], &r[1], &r[2], &r[3]); err != nil {
			return nil, err
		}
		stored[n] = r
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, n := range sortedKeys(want) {
		d := differingQueue{number: n, queue: names[n]}
		r, ok := stored[n]
		if !ok {
			d.detail = "it has no row in the table queues"
			found = append(found, d)
		}
		for i, field := range queueFields {
			if ok && r[i] != want[n][i] {
				d.field, d.detail = field, fmt.Sprintf("the table says %s, the events say %s", shown(field, r[i]), shown(field, want[n][i]))
				found = append(found, d)
			}
		}
		delete(stored, n)
	}
	for _, n := range sortedKeys(stored) {
		d := differingQueue{number: n, queue: fmt.Sprint("number ", n), detail: "its row in the table queues belongs to no event"}
		if name, err := tx.NameOf(ctx, n); err == nil {
			d.queue = name
		}
		found = append(found, d)
	}
	return found, nil
}
