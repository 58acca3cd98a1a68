package modeltest

import (
	"errors"
	"time"

	"pgregory.net/rapid"

	"jobledger/commands"
)

func (m *model) enqueueAny() {
	n := rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(m.rt, "jobs")
	asked := make([]commands.Enqueue, n)
	for i := range asked {
		asked[i] = m.order()
	}
	var got []commands.Enqueued
	first := true
	var fresh []*modelJob
	var want error
	err := m.sure(func() (err error) {
		got, err = m.Enqueue(m.T.Context(), "cli:test", asked...)
		return err
	}, func() {
		first = false
		fresh, want = m.judgeEnqueue(asked)
	})
	if first {
		fresh, want = m.judgeEnqueue(asked)
	}
	if !errors.Is(err, want) || want == nil && err != nil {
		m.rt.Fatalf("enqueue: got %v, want %v", err, want)
	}
	for i := range got {
		j := m.find(asked[i])
		isFresh := false
		for _, f := range fresh {
			isFresh = isFresh || f == j
		}
		if string(got[i].ID) != j.id || got[i].Existing != (!first || !isFresh || i > 0 &&
			m.earlier(asked[:i], j)) {
			m.rt.Fatalf("enqueued %+v, want %s, new: %t", got[i], j.id, isFresh)
		}
		m.check(j, got[i].Job)
	}
}

// earlier reports whether j was enqueued by one of these, earlier in the same call.
func (m *model) earlier(asked []commands.Enqueue, j *modelJob) bool {
	for _, e := range asked {
		if m.find(e) == j {
			return true
		}
	}
	return false
}

func (m *model) order() commands.Enqueue {
	m.orders++
	return commands.Enqueue{
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
}

// find returns the job that e names, or nil if there is none yet.
func (m *model) find(e commands.Enqueue) *modelJob {
	for _, j := range m.jobs {
		if j.id == e.ID || e.Key != "" && j.queue == e.Queue && j.key == e.Key {
			return j
		}
	}
	return nil
}

// judgeEnqueue accepts all or none.
func (m *model) judgeEnqueue(asked []commands.Enqueue) (fresh []*modelJob, want error) {
	jobs, events := len(m.jobs), len(m.ats)
	for _, e := range asked {
		switch j := m.find(e); {
		case j != nil && (j.erased || j.payload != string(e.Payload)):
			m.jobs, m.ats = m.jobs[:jobs], m.ats[:events]
			return nil, commands.ErrConflict
		case j != nil:
			continue
		}
		if e.RunAt.Before(m.Now) {
			e.RunAt = m.Now
		}
		m.stamp()
		d := m.given[e.Queue]
		if e.MaxAttempts == 0 {
			if e.MaxAttempts = d.MaxAttempts; e.MaxAttempts == 0 {
				e.MaxAttempts = 5
			}
		}
		if e.MaxRuntime == 0 {
			e.MaxRuntime = d.MaxRuntime
		}
		j := &modelJob{policy: d.Backoff, id: e.ID, queue: e.Queue, key: e.Key, payload: string(e.Payload),
			version:  e.Version,
			requires: e.Requires, priority: e.Priority,
			max: e.MaxAttempts, runAt: e.RunAt, runtime: e.MaxRuntime, state: "queued", seq: 1,
			refused: map[string]bool{}}
		m.jobs, fresh = append(m.jobs, j), append(fresh, j)
	}
	return fresh, nil
}
