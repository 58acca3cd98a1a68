package modeltest

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/deps"
)

// sight is the content of the tables when the ledger had this many events.
type sight struct {
	pos  int64
	jobs []projection.Job
}

// look keeps a copy of all tables.
func (m *model) look() {
	if len(m.seen) < 5 {
		m.seen = append(m.seen, sight{int64(len(m.ats)), m.list()})
	}
}

func (m *model) read(fn func(tx *ledger.Tx) error) {
	m.rt.Helper()
	if err := m.Store.Read(m.T.Context(), fn); err != nil {
		m.rt.Fatal(err)
	}
}

func (m *model) list() (jobs []projection.Job) {
	m.rt.Helper()
	m.read(func(tx *ledger.Tx) (err error) {
		jobs, err = projection.List(m.T.Context(), tx, projection.Filter{})
		return err
	})
	return jobs
}

// checkAll ends each sequence: the rows equal the model, the fold of the events equals the rows, as-of
// queries return what was once seen, and dropped tables are rebuilt.
func (m *model) checkAll() {
	m.look()
	rows := make(map[event.JobID]projection.Job)
	for _, j := range m.list() {
		rows[j.ID] = j
	}
	for _, j := range m.jobs {
		m.check(j, rows[event.JobID(j.id)])
	}
	m.checkWaiting(rows)
	m.checkFold()
	for _, s := range m.seen {
		m.checkAsOf(s, rows)
	}
	m.checkRebuild()
}

// checkWaiting compares what the jobs wait for.
func (m *model) checkWaiting(rows map[event.JobID]projection.Job) {
	var got, want []deps.Edge
	m.read(func(tx *ledger.Tx) (err error) {
		got, err = deps.All(m.T.Context(), tx)
		return err
	})
	for _, j := range m.jobs {
		for _, e := range j.after {
			edge := deps.Edge{Child: rows[event.JobID(j.id)].N, On: e.on, Broken: e.broken}
			if e.parent != nil {
				edge.Parent = rows[event.JobID(e.parent.id)].N
			}
			want = append(want, edge)
		}
	}
	slices.SortFunc(want, func(a, b deps.Edge) int {
		return cmp.Or(cmp.Compare(a.Child, b.Child), cmp.Compare(a.Parent, b.Parent))
	})
	if !slices.Equal(got, want) {
		m.rt.Fatalf("the jobs wait for\n%+v, want\n%+v", got, want)
	}
}

func (m *model) checkFold() {
	m.read(func(tx *ledger.Tx) error {
		v, err := audit.Verify(m.T.Context(), tx, nil)
		if len(v.Findings) > 0 || int(v.Events) != len(m.ats) || int(v.Jobs) != len(m.jobs) {
			m.rt.Fatalf("verify: %+v, want %d events of %d jobs", v, len(m.ats), len(m.jobs))
		}
		return err
	})
}

// checkAsOf compares what was seen with the as-of queries for that event, by its pos and by its time.
func (m *model) checkAsOf(s sight, rows map[event.JobID]projection.Job) {
	m.read(func(tx *ledger.Tx) error {
		at, err := projection.AtPos(m.T.Context(), tx, s.pos)
		if err != nil {
			return err
		}
		m.sameJobs(tx, s, at, rows)
		if s.pos == 0 {
			return nil
		}
		last := m.ats[s.pos-1]
		if at, err = projection.AtTime(m.T.Context(), tx, last); err != nil {
			return err
		}
		if want := int64(sort.Search(len(m.ats),
			func(i int) bool { return m.ats[i].After(last) })); at.Pos != want {
			m.rt.Fatalf("at %s the last event was %d, want %d", last, at.Pos, want)
		}
		if at.Pos == s.pos {
			m.sameJobs(tx, s, at, rows)
		}
		return nil
	})
}

func (m *model) sameJobs(tx *ledger.Tx, s sight, at projection.Moment, rows map[event.JobID]projection.Job) {
	m.rt.Helper()
	then, err := projection.ListAsOf(m.T.Context(), tx, projection.Filter{}, at)
	if err != nil || len(then) != len(s.jobs) {
		m.rt.Fatalf("as of %d: %d jobs, %v, want %d", s.pos, len(then), err, len(s.jobs))
	}
	for i, want := range s.jobs {
		want.Erased = rows[want.ID].Erased // erased data is missing in as-of queries too
		got := then[i].Job
		if asText(got) != asText(want) || then[i].Now != rows[want.ID].State {
			m.rt.Fatalf("as of %d, got\n%s\nwant\n%s", s.pos, asText(got), asText(want))
		}
		one, _, err := projection.JobAsOf(m.T.Context(), tx, want.N, at)
		one.Erased = want.Erased
		if err != nil || asText(one) != asText(want) {
			m.rt.Fatalf("job as of %d: %v, got\n%s\nwant\n%s", s.pos, err, asText(one), asText(want))
		}
	}
}

func asText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// checkRebuild: a rebuild has nothing to repair, and restores tables that were dropped.
func (m *model) checkRebuild() {
	m.Now = m.Now.Add(time.Second)
	before := m.list()
	r, err := m.Rebuild(m.T.Context(), "cli:test")
	if m.stamp(); err != nil || int(r.Jobs) != len(m.jobs) || r.Changed+r.Missing+r.Extra+r.Queues != 0 ||
		len(r.Repaired) > 0 {
		m.rt.Fatalf("rebuild: %+v, %v", r, err)
	}
	err = m.Store.Write(m.T.Context(), func(tx *ledger.Tx) error {
		for _, table := range []string{"jobs", "queues"} {
			if _, err := tx.Exec(`DELETE FROM ` + table); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		m.rt.Fatal(err)
	}
	r, err = m.Rebuild(m.T.Context(), "cli:test")
	if m.stamp(); err != nil || int(r.Missing) != len(m.jobs) || r.Changed+r.Extra != 0 {
		m.rt.Fatalf("rebuild of nothing: %+v, %v", r, err)
	}
	if after := m.list(); asText(after) != asText(before) {
		m.rt.Fatalf("rebuilt\n%s\nwas\n%s", asText(after), asText(before))
	}
	m.checkFold()
	for name, paused := range m.paused {
		m.read(func(tx *ledger.Tx) error {
			q, err := projection.GetQueue(m.T.Context(), tx, name)
			if err == nil && q.Paused != paused {
				m.rt.Fatalf("queue %s is paused: %t, want %t", name, q.Paused, paused)
			}
			return err
		})
	}
}
