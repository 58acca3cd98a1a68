package api

import (
	"net/http"
	"strconv"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger"
)

// payload sends the payload of a job, to the byte.
func (a *API) payload(w http.ResponseWriter, r *http.Request) error {
	return a.sendBody(w, r, "payload", func(j state.Job) []byte { return j.Payload })
}

// result sends the result of a job, to the byte.
func (a *API) result(w http.ResponseWriter, r *http.Request) error {
	return a.sendBody(w, r, "result", func(j state.Job) []byte { return j.Result })
}

// BodyParams are the parameters of a payload and of a result.
var BodyParams = []string{"at"}

// sendBody sends what a user or a worker gave, as a file that no browser shows or runs.
func (a *API) sendBody(w http.ResponseWriter, r *http.Request, what string,
	of func(state.Job) []byte) error {
	id := r.PathValue("job")
	query, err := ReadParams(r, BodyParams)
	if err == nil {
		err = checkJob(id)
	}
	if err == nil {
		err = a.Within(r, nil)
	}
	if err != nil {
		return err
	}
	var j state.Job
	var tail int64
	err = a.Store.Read(r.Context(), func(tx *ledger.Tx) (err error) {
		if tail, err = tx.Tail(r.Context()); err != nil {
			return err
		}
		at, err := a.asOf(r.Context(), tx, query)
		if err != nil {
			return err
		}
		now, err := find.Ref{ID: id}.Find(r.Context(), tx)
		if err == nil {
			j, err = state.ReadJob(r.Context(), tx, now, at)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case j.State == 0:
		return NotYet(j.ID, j.Later)
	case j.Erased:
		return fault.Exitf(fault.ExitNothing, "the payload and the results of job %s were erased", j.ID)
	case what == "result" && of(j) == nil:
		return fault.Exitf(fault.ExitNothing, "job %s has no result", j.ID)
	}
	h := w.Header()
	h.Set("Jobledger-Pos", strconv.FormatInt(tail, 10))
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+string(j.ID)+"."+what+`"`)
	return door.Send(w, of(j))
}
