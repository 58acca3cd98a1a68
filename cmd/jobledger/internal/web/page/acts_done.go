package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// didAt is the address of what an act on many jobs did. What it left alone is in no event: the address says
// it.
func didAt(t act.Tally) string {
	q := url.Values{"to": {fmt.Sprintf("pos:%d", t.To)}}
	for name, n := range map[string]int{"moved": t.Moved, "not": t.Not, "failed": t.Failed} {
		if n > 0 {
			q.Set(name, strconv.Itoa(n))
		}
	}
	if len(t.MovedOn) > 0 {
		q.Set("job", strings.Join(words.Of(t.MovedOn, func(id event.JobID) string { return string(id) }), " "))
	}
	return fmt.Sprintf("/acts/%d?%s", t.From, q.Encode())
}

// actPage shows what the act did whose first event has the position in the path, up to the position to, or up
// to now. It can be read again and does nothing.
func (p *Pages) actPage(w http.ResponseWriter, r *http.Request) error {
	given, err := api.QueryOf(r)
	if err == nil {
		err = api.CheckParams(given, []string{"to", "moved", "not", "failed", "job"})
	}
	if err != nil {
		return err
	}
	var shown actsView
	for name, n := range map[string]*int{"moved": &shown.Did.Moved, "not": &shown.Did.Not,
		"failed": &shown.Did.Failed} {
		if *n, err = api.WholeParam(given, name, 0, 0, act.MaxJobs); err != nil {
			return err
		}
	}
	for _, id := range strings.Fields(given.Get("job")) {
		if !api.IsJobID(id) {
			return door.BadInput("job", "this is not the id of a job")
		}
		shown.Did.MovedOn = append(shown.Did.MovedOn, event.JobID(id))
	}
	pos, err := strconv.ParseInt(r.PathValue("pos"), 10, 64)
	if err != nil || pos < 1 {
		return door.BadInput("pos", "an act has the position of its first event")
	}
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		if shown.Frame, err = p.FrameAt(r, url.Values{}, tx, frame.Moment{}, "Act"); err != nil {
			return err
		}
		to := shown.Pos
		if given.Has("to") {
			m, err := p.Moment(r.Context(), tx, "to", given.Get("to"))
			if err != nil {
				return err
			}
			to = m.Pos
		}
		did, err := query.ActFrom(r.Context(), tx, pos, to)
		if err != nil {
			return err
		}
		if did.Count == 0 {
			return door.Refusal(http.StatusNotFound, "not_found", fmt.Sprintf("no act begins at pos %d", pos))
		}
		shown.Did.Done, shown.Did.From, shown.Did.To, shown.Reason = did.Count, pos, to, did.Reason
		shown.Act = print.ActWords(did)
		shown.Actor, shown.Began = did.Actor, did.Begin.In(p.Now().Location()).Format("2006-01-02 15:04:05")
		shown.Events = "/events?" + url.Values{"after": {strconv.FormatInt(pos-1, 10)},
			"to": {fmt.Sprintf("pos:%d", to)}, "actor": {did.Actor}}.Encode()
		if about := did.About(); about != "" {
			switch kind := did.Kind(); {
			case kind == event.KindScheduleRemoved:
				shown.About = "/schedules"
			case strings.HasPrefix(kind.String(), "schedule_"):
				shown.About = "/schedules/" + url.PathEscape(about)
			default:
				shown.About = "/queues/" + url.PathEscape(about)
			}
			return nil
		}
		var jobs []act.Chosen
		f := ledger.Filter{After: pos - 1, Until: to, Kinds: []event.Kind{did.Kind()}, Actor: did.Actor}
		for e, err := range tx.Events(r.Context(), f) {
			if err != nil {
				return err
			}
			if jobs = append(jobs, act.Chosen{ID: e.Job}); len(jobs) > maxLinked {
				return nil
			}
		}
		if len(jobs) == did.Count {
			shown.Find = findOf(jobs)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.Render(w, "acts", shown)
}
