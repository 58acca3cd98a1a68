package send

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"net/http"
	"strconv"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
)

// LogParams are the parameters of what a command wrote.
var LogParams = []string{"after", "follow"}

// logs sends what the command of an attempt wrote, to the byte: after the first bytes that the client has,
// and with follow also what it writes until it ends. The files must be on this host.
func (a *Sender) logs(w http.ResponseWriter, r *http.Request) error {
	query, err := api.ReadParams(r, LogParams)
	if err != nil {
		return err
	}
	after, err := api.WholeParam(query, "after", 0, 0, math.MaxInt)
	if err != nil {
		return err
	}
	follows, err := api.SwitchParam(query, "follow")
	if err != nil {
		return err
	}
	o, err := a.output(r)
	if err != nil {
		return err
	}
	d := a.newDownload(w, r, "application/octet-stream", string(o.Job.ID)+"."+r.PathValue("attempt")+"."+
		r.PathValue("stream"))
	if follows {
		return d.run(r, func(ctx context.Context, _ io.Writer) error { return d.follow(ctx, o, after) })
	}
	file, err := o.Open()
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Exitf(fault.ExitNothing, "this host has no %s of attempt %d of job %s", o.Stream(), o.Attempt,
			o.Job.ID)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	from := min(int64(after), info.Size())
	d.headers.Set("Jobledger-After", strconv.FormatInt(info.Size(), 10))
	return d.run(r, func(_ context.Context, out io.Writer) error {
		_, err := io.Copy(out, io.NewSectionReader(file, from, info.Size()-from))
		return err
	})
}

// output finds the file of the attempt that r names.
func (a *Sender) output(r *http.Request) (o logs.Output, err error) {
	id, stream := r.PathValue("job"), r.PathValue("stream")
	o.Attempt, err = strconv.Atoi(r.PathValue("attempt"))
	wrong := ""
	switch {
	case !api.IsJobID(id):
		wrong = "job"
	case err != nil || o.Attempt < 1:
		wrong = "attempt"
	case stream != "out" && stream != "err":
		wrong = "stream"
	}
	if wrong != "" {
		return o, door.BadInput(wrong, "the address is /jobs/JOB/logs/ATTEMPT/out, or err; an attempt is 1 or more")
	}
	if err := a.Within(r, nil); err != nil {
		return o, err
	}
	if err := a.Store.Read(r.Context(), func(tx *ledger.Tx) (err error) {
		o.Job, err = find.Ref{ID: id}.Find(r.Context(), tx)
		return err
	}); err != nil {
		return o, err
	}
	if o.Attempt > o.Job.Attempt {
		return o, fault.Exitf(fault.ExitNothing, "job %s is at attempt %d", o.Job.ID, o.Job.Attempt)
	}
	folder, err := logs.Folder(a.Store.LedgerPath())
	if err != nil {
		return o, err
	}
	o.Stderr = stream == "err"
	o.Folder = folder
	return o, nil
}

// follow sends what is written until the attempt ends. An attempt that ended without a file wrote nothing.
func (d *download) follow(ctx context.Context, o logs.Output, after int) error {
	if err := d.Flush(); err != nil { // the client knows that it is being answered
		return err
	}
	_, err := o.Follow(ctx, d.Store, func(text []byte, skipped int64) error {
		if skipped > 0 {
			text = append([]byte(attemptlog.CutMark(skipped)), text...)
		}
		skip := min(after, len(text))
		if after -= skip; skip == len(text) {
			return nil
		}
		if _, err := d.Write(text[skip:]); err != nil {
			return err
		}
		return d.Flush()
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
