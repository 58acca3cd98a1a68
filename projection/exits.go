package projection

import (
	"cmp"
	"context"
	"database/sql"
	"math"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Exit is how the command of a job's last failure ended.
type Exit struct {
	Code   *int   // nil: it was killed, or there was none
	Signal string // that killed it; "": none
}

// lastFailure is the last event failed or reclaimed of job j, up to a pos.
var lastFailure = event.SQL(`(SELECT x.pos FROM events x
    WHERE x.job = j.n AND x.seq > 0 AND x.kind IN ({failed}, {reclaimed}) AND x.pos <= ?
    ORDER BY x.seq DESC LIMIT 1)`)

var lastExits = `SELECT j.n, CAST(e.data ->> 'exit_code' AS BIGINT), e.data ->> 'signal'
FROM jobs j JOIN events e ON e.pos = ` + lastFailure + ` WHERE j.n IN (`

// exitBatch is how many jobs one query of LastExits asks for.
const exitBatch = 500

// LastExits returns how the commands of the last failures of jobs ended, by the number of the job, as of pos
// until; 0: now. Jobs without an error code are not asked for, and those whose last failure had no exit code
// and no signal are not in the answer.
func LastExits(ctx context.Context, tx *ledger.Tx, jobs []Job, until int64) (map[int64]Exit, error) {
	until = cmp.Or(until, math.MaxInt64)
	exits := make(map[int64]Exit)
	args := []any{until}
	ask := func() error {
		if len(args) == 1 {
			return nil
		}
		rows, err := tx.Query(ctx, lastExits+table.Placeholders(len(args)-1)+`)`, args...)
		var n int64
		var code sql.NullInt64
		var signal sql.NullString
		args = args[:1]
		return table.Each(rows, err, []any{&n, &code, &signal}, func() error {
			exit := Exit{Signal: signal.String}
			if code.Valid {
				exit.Code = new(int(code.Int64))
			}
			if code.Valid || signal.Valid {
				exits[n] = exit
			}
			return nil
		})
	}
	for _, j := range jobs {
		if j.ErrorCode == "" {
			continue
		}
		if args = append(args, j.N); len(args) > exitBatch {
			if err := ask(); err != nil {
				return nil, err
			}
		}
	}
	return exits, ask()
}
