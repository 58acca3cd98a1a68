package history

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// CodeFailures are the attempts of a queue that failed with one code, or were taken back for one reason.
type CodeFailures struct {
	Queue, Code    string
	Attempts, Jobs int64
	First, Last    time.Time
}

var failuresByCode = event.SQL(`SELECT q.data ->> 'queue',
    coalesce(CASE WHEN e.kind = {failed} THEN e.data ->> 'error_code' ELSE e.data ->> 'reason' END, ''),
    count(*), count(DISTINCT e.job), min(e.at), max(e.at)
FROM events e CROSS JOIN events q
WHERE q.pos = e.job AND e.kind IN ({failed}, {reclaimed}) AND e.pos > ? AND e.pos <= ? GROUP BY 1, 2`)

// FailuresByCode counts the failures after a position up to another one, of a queue; "": of all. The largest
// number is first.
func FailuresByCode(ctx context.Context, tx *ledger.Tx, after, until int64, queue string) (
	found []CodeFailures, err error) {
	err = tx.Each(ctx, func(row []driver.Value) bool {
		number := func(i int) int64 { n, _ := row[i].(int64); return n }
		c := CodeFailures{Queue: ledger.Text(row[0]), Code: ledger.Text(row[1]), Attempts: number(2),
			Jobs: number(3), First: event.FromMicros(number(4)), Last: event.FromMicros(number(5))}
		if queue == "" || queue == c.Queue {
			found = append(found, c)
		}
		return true
	}, failuresByCode, after, until)
	slices.SortFunc(found, func(a, b CodeFailures) int {
		if a.Attempts != b.Attempts {
			return int(b.Attempts - a.Attempts)
		}
		return strings.Compare(a.Queue+"\x00"+a.Code, b.Queue+"\x00"+b.Code)
	})
	return found, err
}
