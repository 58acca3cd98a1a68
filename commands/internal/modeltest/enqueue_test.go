package modeltest

import (
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// modelAnswer is what enqueuing one job should answer.
type modelAnswer struct {
	job                *modelJob
	seq                int // of the job at that time
	existing, replaced bool
}

func (m *model) enqueueAny() {
	n := rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(m.rt, "jobs")
	asked := make([]commands.Enqueue, n)
	for i := range asked {
		asked[i] = m.order(asked[:i])
	}
	var got []commands.Enqueued
	var answers []modelAnswer
	var want error
	judge := func() { answers, want = m.judgeEnqueue(asked) }
	err := m.sure(func() (err error) {
		got, err = m.Enqueue(m.T.Context(), "cli:test", asked...)
		return err
	}, judge)
	judge() // after a commit without an answer it finds what the first call has made
	if !errors.Is(err, want) || want == nil && err != nil {
		m.rt.Fatalf("enqueue %+v: got %v, want %v", asked, err, want)
	}
	for i := range got {
		a := answers[i]
		if string(got[i].ID) != a.job.id || got[i].Existing != a.existing || got[i].Replaced != a.replaced ||
			got[i].Seq != int64(a.seq) {
			m.rt.Fatalf("enqueued %+v, want %s with seq %d, existing: %t, replaced: %t", got[i], a.job.id, a.seq,
				a.existing, a.replaced)
		}
		if a.seq == a.job.seq { // another job of the call may have changed it since
			m.check(a.job, got[i].Job)
		}
	}
}

// order returns a job to enqueue, after those of the same call.
func (m *model) order(earlier []commands.Enqueue) commands.Enqueue {
	m.orders++
	e := commands.Enqueue{
		Queue:       rapid.SampledFrom(modelQueues).Draw(m.rt, "queue"),
		Key:         rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(m.rt, "key"),
		Payload:     []byte(rapid.SampledFrom([]string{"", "p"}).Draw(m.rt, "payload")),
		Priority:    rapid.IntRange(-1, 1).Draw(m.rt, "priority"),
		MaxAttempts: rapid.IntRange(0, 3).Draw(m.rt, "max_attempts"),
		MaxRuntime:  time.Duration(rapid.IntRange(0, 1).Draw(m.rt, "runtime")) * 30 * time.Second,
		RunAt:       m.Now.Add(time.Duration(rapid.IntRange(-1, 2).Draw(m.rt, "run_at")) * 10 * time.Second),
		Version:     rapid.SampledFrom([]string{"", "", "", "v2"}).Draw(m.rt, "version"),
		Requires:    rapid.SampledFrom([][]string{nil, nil, nil, {"gpu"}}).Draw(m.rt, "requires"),
		ID:          id(m.orders),
	}
	if e.Key != "" {
		e.UniqueWhile = rapid.SampledFrom([]string{"", event.WhileQueued, event.WhileUnfinished}).Draw(m.rt,
			"while")
	}
	if e.UniqueWhile != "" {
		e.OnDuplicate = rapid.SampledFrom([]string{"", commands.IgnoreDuplicate,
			commands.ReplaceDuplicate}).Draw(m.rt, "on_duplicate")
	}
	if rapid.IntRange(0, 2).Draw(m.rt, "waits") == 2 {
		m.drawWaiting(&e, earlier)
	}
	return e
}

// find returns the job that e names, or nil if there is none.
func (m *model) find(e commands.Enqueue) *modelJob {
	for _, j := range m.jobs {
		if j.id == e.ID {
			return j
		}
	}
	if e.Key == "" {
		return nil
	}
	return m.holder(e.Queue, e.Key)
}

// holder returns the job that has this key, or nil.
func (m *model) holder(queue, key string) *modelJob {
	for _, j := range m.jobs {
		if j.queue == queue && j.key == key && !j.keyFree {
			return j
		}
	}
	return nil
}

// judgeEnqueue accepts all or none.
func (m *model) judgeEnqueue(asked []commands.Enqueue) (answers []modelAnswer, want error) {
	saved, events, delays := make([]modelJob, len(m.jobs)), len(m.ats), slices.Clone(m.delays)
	for i, j := range m.jobs {
		saved[i] = *j
		saved[i].after = slices.Clone(j.after)
	}
	for range asked {
		a, err := m.judgeOrder(asked[len(answers)], asked, answers)
		if err != nil {
			m.jobs, m.ats, m.unread, m.delays = m.jobs[:len(saved)], m.ats[:events], nil, delays
			for i, j := range m.jobs {
				*j = saved[i]
			}
			return nil, err
		}
		a.seq = a.job.seq
		answers = append(answers, a)
	}
	return answers, nil
}

// judgeOrder accepts e, which may name those of asked that are answered.
func (m *model) judgeOrder(e commands.Enqueue, asked []commands.Enqueue, answers []modelAnswer) (
	a modelAnswer, want error) {
	if j := m.find(e); j != nil {
		return m.judgeExisting(e, j)
	}
	if e.UniqueWhile == event.WhileUnfinished && m.openHolder(e.Queue, e.Key, nil) {
		return a, commands.ErrConflict
	}
	if e.RunAt.Before(m.Now) {
		e.RunAt = m.Now
	}
	d := m.given[e.Queue]
	if e.MaxAttempts == 0 {
		if e.MaxAttempts = d.MaxAttempts; e.MaxAttempts == 0 {
			e.MaxAttempts = 5
		}
	}
	if e.MaxRuntime == 0 {
		e.MaxRuntime = d.MaxRuntime
	}
	j := &modelJob{all: m, policy: d.Backoff, id: e.ID, queue: e.Queue, key: e.Key, while: e.UniqueWhile,
		payload: string(e.Payload), version: e.Version, requires: e.Requires, priority: e.Priority,
		max: e.MaxAttempts, runAt: e.RunAt, runtime: e.MaxRuntime, state: "queued", seq: 1,
		refused: map[string]bool{}}
	if !m.judgeWaiting(j, e, func(id event.JobID) *modelJob {
		for i := range answers {
			if asked[i].ID == string(id) {
				return answers[i].job
			}
		}
		return m.find(commands.Enqueue{ID: string(id)})
	}) {
		return a, commands.ErrConflict
	}
	return modelAnswer{job: j}, nil
}

// judgeExisting answers for e where j has its id or its key.
func (m *model) judgeExisting(e commands.Enqueue, j *modelJob) (a modelAnswer, want error) {
	a = modelAnswer{job: j, existing: true}
	same := j.payload == string(e.Payload)
	switch byKey := j.id != e.ID; {
	case j.while != e.UniqueWhile && (j.while == "" || e.UniqueWhile == ""), j.erased:
		return a, commands.ErrConflict
	case !byKey || e.UniqueWhile == "":
		if !same && !j.replaced {
			return a, commands.ErrConflict
		}
	case e.OnDuplicate == commands.ReplaceDuplicate && !same:
		if j.state != "queued" && j.state != "blocked" {
			return a, commands.ErrConflict
		}
		m.stamp()
		j.payload, j.replaced, a.replaced = string(e.Payload), true, true
		j.seq++
	}
	return a, nil
}
