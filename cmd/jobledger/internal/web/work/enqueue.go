package work

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/files/joblines"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/commands/worker"
	"jobledger/ledger/event"
)

// enqueue takes one job as JSON, or a job a line.
func (m *Room) enqueue(w http.ResponseWriter, r *http.Request, c Caller) error {
	if _, err := query(r); err != nil {
		return err
	}
	kind, err := kindOf(r, "application/json", "application/x-ndjson")
	if err != nil {
		return err
	}
	if kind == "application/json" {
		return m.enqueueOne(w, r, c, "")
	}
	text, err := body(w, r, MaxBody)
	if err != nil {
		return err
	}
	lines, err := linesOf(text)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if err := wire.Check(line.text); err != nil {
			return m.badLines(lines, wire.InLine(line.n, fault.Usagef("line %d: %w", line.n, err)))
		}
		if err := r.Context().Err(); err != nil {
			return err
		}
	}
	reader := joblines.Reader{Now: m.Now(), Names: joblines.NewNames()}
	var jobs []commands.Enqueue
	for chunk, err := range reader.Chunks(bytes.NewReader(text)) {
		if err != nil {
			return m.badLines(lines, err)
		}
		if jobs = append(jobs, chunk.Jobs...); len(jobs) > MaxJobs {
			return refusal(http.StatusRequestEntityTooLarge, "too_large", "more than 1,000 jobs in one request")
		}
	}
	if len(jobs) == 0 {
		return fault.Usagef("there is no job")
	}
	answers, _, err := m.add(w, r, c, jobs)
	if err != nil {
		return err
	}
	status := http.StatusOK
	out, as := items[either[enqueuedJSON]]{make([]either[enqueuedJSON], len(answers))}, shapeOf(w, r)
	for i, a := range answers {
		out.Items[i] = as.enqueued(a)
		if !a.Existing {
			status = http.StatusCreated
		}
	}
	return m.send(w, r, status, out)
}

// jobLine is a line with a job, and its number.
type jobLine struct {
	n    int
	text []byte
}

// maxLines is how many lines a request has at most, with the empty ones.
const maxLines = 10 * MaxJobs

// linesOf returns the lines of text that are not empty. They are counted before anything else is done with
// them, since a body of newlines has millions.
func linesOf(text []byte) (lines []jobLine, err error) {
	tooMany := refusal(http.StatusRequestEntityTooLarge, "too_large", "more than 1,000 jobs in one request")
	if bytes.Count(text, []byte("\n")) > maxLines {
		return nil, tooMany
	}
	n := 0
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if n++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if len(lines) == MaxJobs {
			return nil, tooMany
		}
		lines = append(lines, jobLine{n, line})
	}
	return lines, nil
}

// maxBadLines is how many lines an answer names at most.
const maxBadLines = 20

// badLines is the answer to lines of which some are bad, the first because of err.
func (m *Room) badLines(lines []jobLine, err error) error {
	p := *problemOf(err)
	p.Errors = nil
	reader := joblines.Reader{Now: m.Now(), Names: joblines.NewNames()}
	for _, line := range lines {
		if len(p.Errors) == maxBadLines {
			break
		}
		lineErr := wire.Check(line.text)
		if lineErr == nil {
			_, lineErr = reader.Job(bytes.TrimPrefix(line.text, []byte("\ufeff")))
		}
		if in, _ := wire.InputOf(lineErr); lineErr != nil {
			in.Line = line.n
			p.Errors = append(p.Errors, in)
		}
	}
	return &p
}

// put takes one job as JSON, with the id of the address.
func (m *Room) put(w http.ResponseWriter, r *http.Request, c Caller) error {
	if _, err := query(r); err != nil {
		return err
	}
	if _, err := kindOf(r, "application/json"); err != nil {
		return err
	}
	id := r.PathValue("job")
	if !isULID(id) {
		return wire.InField("job", fault.Usagef("%.40q is not a ULID in capitals", id))
	}
	return m.enqueueOne(w, r, c, id)
}

func (m *Room) enqueueOne(w http.ResponseWriter, r *http.Request, c Caller, id string) error {
	text, err := body(w, r, MaxOne)
	if err != nil {
		return err
	}
	if err := wire.Check(text); err != nil {
		return fault.Usagef("%w", err)
	}
	e, err := joblines.Reader{Now: m.Now()}.Job(text)
	if err != nil {
		return err
	}
	if id != "" && e.ID != "" && e.ID != id {
		return wire.InField("id", fault.Usagef("the id %s is not that of the address", e.ID))
	}
	if id != "" {
		e.ID = id
	}
	return m.addOne(w, r, c, e)
}

// rawParams are the parameters of a job whose payload is the body.
var rawParams = []string{"key", "group", "priority", "tag", "run_at", "delay", "max_attempts", "max_runtime",
	"backoff", "version", "requires", "after", "before", "hold", "unique_while", "on_duplicate", "id"}

// enqueueRaw takes the payload as it is; the parameters say the rest.
func (m *Room) enqueueRaw(w http.ResponseWriter, r *http.Request, c Caller) error {
	params, err := query(r, rawParams...)
	if err != nil {
		return err
	}
	line, err := lineOf(params)
	if err != nil {
		return err
	}
	e, err := joblines.Reader{Now: m.Now(), Defaults: commands.Enqueue{Queue: r.PathValue("queue")}}.Job(line)
	if err != nil {
		return err
	}
	if e.Payload, err = body(w, r, commands.MaxPayload); err != nil {
		return err
	}
	return m.addOne(w, r, c, e)
}

// lineOf is a job as JSON, without a payload, that has these parameters.
func lineOf(params url.Values) ([]byte, error) {
	line := make(map[string]any, len(params))
	for name, values := range params {
		switch name {
		case "tag":
			tags, err := joblines.Tags(name, values)
			if err != nil {
				return nil, wire.InField(name, err)
			}
			line["tags"] = tags
		case "requires", "after", "before":
			line[name] = values
		default:
			if len(values) > 1 {
				return nil, wire.InField(name, fault.Usagef("%s is given twice", name))
			}
			line[name] = values[0]
			if slices.Contains([]string{"priority", "max_attempts", "hold"}, name) {
				if !json.Valid([]byte(values[0])) {
					return nil, wire.InField(name, fault.Usagef("%s: %.40q", name, values[0]))
				}
				line[name] = json.RawMessage(values[0])
			}
		}
	}
	return json.Marshal(line)
}

func (m *Room) addOne(w http.ResponseWriter, r *http.Request, c Caller, e commands.Enqueue) error {
	ours := e.Key == ""
	answers, key, err := m.add(w, r, c, []commands.Enqueue{e})
	if err != nil {
		if p := problemOf(err); key && ours && p.Status == http.StatusConflict {
			p.Status = http.StatusUnprocessableEntity // as the header Idempotency-Key has it
			return p
		}
		return err
	}
	a := answers[0]
	status := http.StatusCreated
	if a.Existing {
		status = http.StatusOK
	}
	w.Header().Set("Location", m.Prefix.At(wire.Root)+"/jobs/"+string(a.ID))
	return m.send(w, r, status, shapeOf(w, r).enqueued(a))
}

// add enqueues jobs, all or none. key says that the header Idempotency-Key was the key of the only one.
func (m *Room) add(w http.ResponseWriter, r *http.Request, c Caller, jobs []commands.Enqueue) (
	answers []commands.Enqueued, key bool, err error) {
	trace := r.Header.Get(worker.TraceTag)
	var others []event.JobID
	for i := range jobs {
		e := &jobs[i]
		if err := mayUse(c, access.Enqueue, e.Queue); err != nil {
			return nil, false, err
		}
		for _, d := range slices.Concat(e.After, e.Before) {
			isIt := func(before commands.Enqueue) bool { return before.ID == string(d.Job) }
			if !slices.ContainsFunc(jobs[:i], isIt) {
				others = append(others, d.Job)
			}
		}
		_, has := e.Tags[worker.TraceTag]
		if worker.IsTraceparent(trace) && !has && len(e.Tags) < commands.MaxTags {
			e.Tags[worker.TraceTag] = trace
		}
	}
	if header := r.Header.Get("Idempotency-Key"); header != "" && len(jobs) == 1 && jobs[0].Key == "" {
		jobs[0].Key, key = header, true
	}
	ids := others
	for _, e := range jobs {
		if e.ID != "" {
			ids = append(ids, event.JobID(e.ID))
		}
	}
	if err := m.reachable(r, c, others, ids); err != nil {
		return nil, key, err
	}
	err = m.write(w, r, func(ctx context.Context) error {
		answers, err = m.Service.Enqueue(ctx, c.Actor, jobs...)
		return err
	})
	return answers, key, err
}

// reachable returns an error if a job that others wait for, or a job with a requested id, is in a queue that
// c may not use.
func (m *Room) reachable(r *http.Request, c Caller, others, ids []event.JobID) error {
	if c.AllQueues() || len(ids) == 0 {
		return nil
	}
	mine, err := m.jobs(r.Context(), c, ids, true)
	if err != nil {
		return err
	}
	all := c
	all.Queues = []string{"*"}
	there, err := m.jobs(r.Context(), all, ids, true)
	if err != nil {
		return err
	}
	for _, id := range others {
		if _, ok := mine[id]; !ok {
			return errHidden(id)
		}
	}
	for id := range there {
		if _, ok := mine[id]; !ok {
			return &commands.ConflictError{Command: "enqueue", Job: id, Why: "the id is taken"}
		}
	}
	return nil
}
