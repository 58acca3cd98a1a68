package page

import (
	"fmt"
	"net/http"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection/status"
)

// ledgersView is what the overview of several ledgers shows.
type ledgersView struct {
	frame.Frame
	Ledgers []ledgerView
}

// ledgerView is one of several ledgers.
type ledgerView struct {
	frame.Ledger
	Pos      int64
	Queues   *words.Table
	Workers  string
	Concerns []frame.Concern
	Err      string // why it cannot be read
}

// ledgersPage shows all ledgers of this process. What each shows needs a login there.
func (p *Pages) ledgersPage(w http.ResponseWriter, r *http.Request) error {
	shown := ledgersView{Frame: p.EmptyFrame(r, "Ledgers")}
	now := p.Now()
	shown.Made = now.Format(time.TimeOnly)
	for _, l := range p.Ledgers {
		v := ledgerView{Ledger: l}
		var figures view.Figures
		err := l.API.Store.Read(r.Context(), func(tx *ledger.Tx) (err error) {
			figures, _, err = l.API.Figures.Read(r.Context(), tx, now)
			return err
		})
		if err != nil {
			v.Err = l.API.Door.ProblemOf(err).Detail
		}
		v.Pos = figures.Pos
		v.Queues, _ = print.Status(figures.Queues, now)
		counts := make(map[status.WorkerState]int)
		for _, one := range figures.Workers {
			counts[one.State]++
		}
		v.Workers = fmt.Sprintf("%d working, %d idle, %d silent", counts[status.Working], counts[status.Idle],
			counts[status.Silent])
		for _, q := range figures.Queues {
			for _, c := range state.Concerns(q, now) {
				v.Concerns = append(v.Concerns, frame.Concern{Level: frame.LevelNames[c.Level],
					Text: q.Name + ": " + c.Text})
			}
		}
		shown.Ledgers = append(shown.Ledgers, v)
	}
	return p.Render(w, "ledgers", shown)
}
