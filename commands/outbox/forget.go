package outbox

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

const (
	defaultKeepOnce = 90 * 24 * time.Hour
	forgetEvery     = 24 * time.Hour
	forgetPage      = 1000 // rows of a page
)

// forget removes the rows of worker.Once that are older than KeepOnce and whose job has ended, by the ledger
// of this relay. A job that the ledger does not have may be one of another ledger: its row stays.
func (m *mover) forget(ctx context.Context) (removed int64, err error) {
	keep := cmp.Or(m.KeepOnce, defaultKeepOnce)
	if keep < 0 {
		return 0, nil
	}
	before := time.Now().Add(-keep).UTC().Format("2006-01-02T15:04:05.000Z")
	for last := ""; ; {
		var page []string
		query := fmt.Sprintf(`SELECT job FROM jobledger_once WHERE at < '%s' AND job > '%s' ORDER BY job LIMIT %d`,
			before, strings.ReplaceAll(last, "'", "''"), forgetPage)
		err := m.conn.Query(ctx, query, func(scan func(...any) error) (bool, error) {
			err := scan(&last)
			page = append(page, last)
			return true, err
		})
		if err != nil {
			return removed, err
		}
		ended, err := m.ended(ctx, page)
		if err != nil {
			return removed, err
		}
		if len(ended) > 0 {
			n, err := m.conn.Exec(ctx, `DELETE FROM jobledger_once WHERE job IN (`+placeholders(len(ended))+`)`,
				ended...)
			if removed += n; err != nil {
				return removed, err
			}
		}
		if len(page) < forgetPage {
			return removed, nil
		}
	}
}

// ended returns those of the jobs that have ended.
func (m *mover) ended(ctx context.Context, ids []string) (ended []any, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = m.Service.Store.Read(ctx, func(tx *ledger.Tx) error {
		ended = nil
		for _, id := range ids {
			j, found, err := projection.Get(ctx, tx, event.JobID(id))
			if err != nil {
				return err
			}
			if found && j.State.Final() {
				ended = append(ended, id)
			}
		}
		return nil
	})
	return ended, err
}
