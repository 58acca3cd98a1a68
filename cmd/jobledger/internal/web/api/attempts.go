package api

import (
	"cmp"
	"math"
	"strconv"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/ledger"
	"jobledger/projection/query"
)

// readAttempts adds claims, of the job in the path if there is one. With at they are as they were at that
// moment.
func (a *API) readAttempts(q *question) error {
	asked, err := ledger.Read(q, a.Store, func(tx *ledger.Tx) (query.Attempts, error) {
		return a.attemptsQuery(q, tx)
	})
	if err != nil {
		return err
	}
	reader := find.Reader{Store: a.Store, Limit: q.limit}
	var last int64
	for one, err := range reader.Attempts(q, asked) {
		if err == nil {
			last = one.Pos
			err = q.add(print.NewAttemptJSON(one))
		}
		if err != nil {
			return err
		}
	}
	q.goOnAfter(last, reader.More)
	return nil
}

// attemptsQuery reads which claims q asks for.
func (a *API) attemptsQuery(q *question, tx *ledger.Tx) (asked query.Attempts, err error) {
	var n int64
	if job := cmp.Or(q.params.Get("job"), q.job); job != "" {
		if n, err = numberOf(q, tx, job); err != nil {
			return asked, err
		}
	}
	if asked, err = find.Attempts(q, tx, q.params, n, a.now(q)); err != nil {
		return asked, err
	}
	if asked.Overlap, err = SwitchParam(q.params, "overlap"); err != nil {
		return asked, err
	}
	after, err := WholeParam(q.params, "after", 0, 0, math.MaxInt)
	asked.After = int64(after)
	return asked, err
}

// goOnAfter sets the next page, if there is more: it has what comes after pos.
func (q *question) goOnAfter(pos int64, more bool) {
	if more {
		q.next = Cloned(q.params)
		q.next.Set("after", strconv.FormatInt(pos, 10))
	}
}
