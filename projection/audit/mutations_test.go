package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/ledger/event"
)

// mutations lists changes of a history, one at a time: each column and each field of each event is set to
// values of every type, and each event is removed, duplicated, swapped with others, or truncated with all
// later events.
func mutations(t testing.TB, events []event.Event, s recording) (all []mutation) {
	t.Helper()
	for i := range events {
		m := &mutator{t: t, i: i, events: events, recording: s}
		m.columns()
		m.data()
		m.bodies()
		m.whole()
		all = append(all, m.all...)
	}
	return all
}

type mutator struct {
	t         testing.TB
	i         int // index of the event
	events    []event.Event
	recording recording
	all       []mutation
}

func (m *mutator) add(field, how string, do func(*recording)) {
	m.all = append(m.all, mutation{m.i, field, how, do})
}

// column sets a column, unless it has this value already.
func (m *mutator) column(name string, column int, how string, v any) {
	is := m.recording.events[m.i][column]
	if b, ok := v.([]byte); ok {
		if old, ok := is.([]byte); ok && bytes.Equal(old, b) {
			return
		}
	} else if is == v {
		return
	}
	m.add(name, how, func(s *recording) { s.events.set(m.i, column, v) })
}

func (m *mutator) columns() {
	row, last := m.recording.events[m.i], len(m.events)-1
	for how, pos := range map[string]int64{"behind the last": int64(last + 2), "far behind": 1000, "zero": 0,
		"below zero": -1} {
		m.column("pos", colPos, how, pos)
	}
	for _, n := range []any{nil, int64(0), int64(-1), int64(1), int64(3), int64(4), int64(999)} {
		m.column("job", colJob, fmt.Sprint("is ", n), n)
	}
	if m.i != 0 && m.i != 2 && m.i != 3 {
		m.column("job", colJob, "is itself", int64(m.i+1))
	}
	for how, seq := range map[string]any{"null": nil, "zero": int64(0), "below zero": int64(-1),
		"far": int64(99)} {
		m.column("seq", colSeq, how, seq)
	}
	if seq, ok := row[colSeq].(int64); ok {
		m.column("seq", colSeq, "one more", seq+1)
		m.column("seq", colSeq, "one less", seq-1)
	}
	for k := int64(-1); k <= int64(len(event.Kinds())+1); k++ {
		m.column("kind", colKind, event.Kind(k).String(), k)
	}
	m.at()
	for how, n := range map[string]int64{"another": row[colActor].(int64)%4 + 1, "none": 999, "zero": 0} {
		m.column("actor", colActor, how, n)
	}
	for _, n := range []any{nil, int64(0), int64(1), int64(2), int64(999)} {
		m.column("worker", colWorker, fmt.Sprint("is ", n), n)
	}
	for how, ulid := range map[string]any{"null": nil, "empty": "", "another": "01KDXYZAF8000000000000000Z",
		"another claim's": "01KDXYZAF8T0KEN00000000001", "another job's": "01KDXYZAF80000000000000003"} {
		m.column("ulid", colULID, how, ulid)
	}
	if ulid, ok := row[colULID].(string); ok {
		m.column("ulid", colULID, "in small letters", strings.ToLower(ulid))
	}
	for how, n := range map[string]any{"null": nil, "zero": int64(0), "below zero": int64(-1), "one": int64(1),
		"many": int64(99)} {
		m.column("attempt", colAttempt, how, n)
	}
	if n, ok := row[colAttempt].(int64); ok {
		m.column("attempt", colAttempt, "one more", n+1)
	}
	for _, column := range []int{colFrom, colTo} {
		name := map[int]string{colFrom: "from_state", colTo: "to_state"}[column]
		m.column(name, column, "null", nil)
		for state := int64(-1); state <= 7; state++ {
			m.column(name, column, fmt.Sprint("is ", state), state)
		}
	}
	m.digest()
}

// at moves an event in time: within the times of its neighbours, and beyond.
func (m *mutator) at() {
	is := m.recording.events[m.i][colAt].(int64)
	before, behind := int64(0), is+3600e6
	if m.i > 0 {
		before = m.recording.events[m.i-1][colAt].(int64)
	}
	if m.i < len(m.events)-1 {
		behind = m.recording.events[m.i+1][colAt].(int64)
	}
	if before <= is-1 {
		m.column("at", colAt, "a microsecond earlier", is-1)
	}
	if behind >= is+1 {
		m.column("at", colAt, "a microsecond later", is+1)
	}
	for how, at := range map[string]int64{"before the event before": before - 1,
		"behind the event behind": behind + 1, "zero": 0, "below zero": -1,
		"in the year 10000": 253402300800000000} {
		m.column("at", colAt, how, at)
	}
}

func (m *mutator) digest() {
	digest, ok := m.recording.events[m.i][colDigest].([]byte)
	if ok {
		flipped := slices.Clone(digest)
		flipped[7] ^= 1
		m.column("digest", colDigest, "a bit", flipped)
		m.column("digest", colDigest, "cut", digest[:31])
		m.column("digest", colDigest, "null", nil)
	}
	m.column("digest", colDigest, "zeros", make([]byte, 32))
	m.column("digest", colDigest, "empty", []byte{})
}

// member is a field of data as it is stored; raw is empty if it is omitted. means is its value.
type member struct{ name, raw, means string }

// members returns the fields of the event's data in their order, including omitted ones.
func (m *mutator) members() (list []member) {
	public, err := json.Marshal(m.events[m.i])
	if err != nil {
		m.t.Fatal(err)
	}
	var e struct{ Data json.RawMessage }
	if err := json.Unmarshal(public, &e); err != nil {
		m.t.Fatal(err)
	}
	stored := make(map[string]json.RawMessage)
	if text, ok := m.recording.events[m.i][colData].(string); ok {
		if err := json.Unmarshal([]byte(text), &stored); err != nil {
			m.t.Fatal(err)
		}
	}
	for d, depth := json.NewDecoder(bytes.NewReader(e.Data)), 0; ; {
		token, err := d.Token()
		if err != nil {
			break
		}
		if delim, ok := token.(json.Delim); ok {
			if depth += map[json.Delim]int{'{': 1, '}': -1}[delim]; depth == 0 {
				break
			}
			continue
		}
		var public json.RawMessage
		if err := d.Decode(&public); err != nil {
			m.t.Fatal(err)
		}
		name := token.(string)
		if _, ok := fieldValues[name]; !ok {
			continue // the process and the digest have their own columns
		}
		f := member{name, string(stored[name]), string(stored[name])}
		var at time.Time
		switch {
		case f.raw != "" || string(public) == "null":
		case name == "max_attempts":
			f.means = string(public)
		case json.Unmarshal(public, &at) == nil:
			f.means = strconv.FormatInt(at.UnixMicro(), 10)
		}
		list = append(list, f)
		delete(stored, name)
	}
	if len(stored) > 0 {
		m.t.Fatalf("event %d: unknown fields %v", m.i+1, stored)
	}
	return list
}

// object returns data with these members, or nil if it would be empty.
func object(list []member) any {
	var parts []string
	for _, f := range list {
		if f.raw != "" {
			parts = append(parts, `"`+f.name+`":`+f.raw)
		}
	}
	if parts == nil {
		return nil
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// data mutates each field of data, and data as a whole.
func (m *mutator) data() {
	list := m.members()
	for k, f := range list {
		values := fieldValues[f.name](f.means, m.recording.events[m.i])
		if f.raw != "" {
			values["left out"] = ""
		}
		for _, how := range slices.Sorted(maps.Keys(values)) {
			if values[how] != f.raw {
				changed := slices.Clone(list)
				changed[k].raw = values[how]
				m.column("data."+f.name, colData, how, object(changed))
			}
		}
		for how, raw := range map[string]string{"null": `null`, "of another type": `{"a":[1]}`, "no JSON": `nul`} {
			changed := slices.Clone(list)
			changed[k].raw = raw
			m.column("data."+f.name, colData, how, object(changed))
		}
	}
	text, ok := m.recording.events[m.i][colData].(string)
	whole := map[string]any{"empty": "", "an empty object": "{}", "a list": "[]",
		"an unknown field": strings.Replace(`{"more":1,`+strings.TrimPrefix(text, "{"), ",}", "}", 1)}
	if !ok {
		whole["an unknown field"] = `{"more":1}`
	} else {
		whole["cut"], whole["a space"] = text[:len(text)-1], strings.Replace(text, ":", ": ", 1)
		whole["a field twice"] = text[:len(text)-1] + "," + text[1:]
	}
	if strings.Count(text, `":`) > 1 {
		whole["null"] = nil // with one field only, omitting it is tried already
	}
	if len(list) > 1 && list[0].raw != "" && list[1].raw != "" {
		turned := slices.Clone(list)
		turned[0], turned[1] = turned[1], turned[0]
		whole["in another order"] = object(turned)
	}
	for _, how := range slices.Sorted(maps.Keys(whole)) {
		m.column("data", colData, how, whole[how])
	}
}

// fieldValues are alternative values of each field of data, by name.
var fieldValues = map[string]func(raw string, row []any) map[string]string{
	"priority": numbers, "max_attempts": numbers, "payload_bytes": numbers, "result_bytes": numbers,
	"exit_code": numbers, "stdout_bytes": numbers, "stderr_bytes": numbers,
	"offered_bytes": numbers, "bodies": numbers, "bytes": numbers, "jobs": numbers, "changed": numbers,
	"missing": numbers, "extra": numbers, "events": numbers,
	"missing_bodies": numbers, "lost": numbers,
	"run_at": times, "lease_until": times, "last_heartbeat": times, "retry_at": times,
	"max_runtime": durations, "progress": shares, "snooze": flags,
	"requires": lists, "queues": lists, "capabilities": lists, "tags": dicts,
	"queue": texts("mail", "video", "x y"), "version": texts("v1"), "key": texts("k4"),
	"error_code": texts("x y"), "error_detail": texts(), "signal": texts(),
	"reason": reasons, "note": texts(), "command": texts("heartbeat", "succeed", "fail", "release"),
	"why": texts(), "from": texts(),
	"stdout_sha256": texts(), "stderr_sha256": texts(),
}

func numbers(raw string, _ []any) map[string]string {
	n, _ := strconv.ParseInt(raw, 10, 64)
	values := map[string]string{"one more": fmt.Sprint(n + 1), "many": fmt.Sprint(n + 1000), "below zero": "-7"}
	if n != 1 && raw != "" {
		values["one less"] = fmt.Sprint(n - 1)
	}
	return values
}

func times(raw string, row []any) map[string]string {
	at := row[colAt].(int64)
	us, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return map[string]string{"an hour behind the event": fmt.Sprint(at + 3600e6),
			"an hour before the event": fmt.Sprint(at - 3600e6)}
	}
	return map[string]string{"a microsecond later": fmt.Sprint(us + 1),
		"a microsecond earlier": fmt.Sprint(us - 1), "an hour later": fmt.Sprint(us + 3600e6),
		"an hour earlier": fmt.Sprint(us - 3600e6), "a week later": fmt.Sprint(us + 7*24*3600e6)}
}

func durations(raw string, _ []any) map[string]string {
	s, _ := strconv.ParseFloat(raw, 64)
	return map[string]string{"longer": fmt.Sprint(s + 0.5), "a day": "86400", "a microsecond": "0.000001",
		"below zero": "-1"}
}

func shares(string, []any) map[string]string {
	return map[string]string{"a part": "0.25", "more than all": "1.5"}
}

func flags(raw string, _ []any) map[string]string { return map[string]string{"true": "true"} }

func lists(raw string, _ []any) map[string]string {
	var list []string
	_ = json.Unmarshal([]byte(raw), &list)
	values := map[string]string{"one more": quoted(append(slices.Clone(list), "more"))}
	if len(list) > 1 {
		values["one less"] = quoted(list[1:])
		slices.Reverse(list)
		values["turned around"] = quoted(list)
	}
	return values
}

func dicts(raw string, _ []any) map[string]string {
	dict := make(map[string]string)
	_ = json.Unmarshal([]byte(raw), &dict)
	dict["zz"] = "more"
	return map[string]string{"one more": quoted(dict)}
}

func texts(others ...string) func(raw string, _ []any) map[string]string {
	return func(raw string, _ []any) map[string]string {
		values := map[string]string{"another": quoted(strings.Trim(raw, `"`) + "x")}
		for _, text := range others {
			values[text] = quoted(text)
		}
		return values
	}
}

// any text is a valid reason, except in a reclaim
func reasons(raw string, row []any) map[string]string {
	if row[colKind] == int64(event.KindReclaimed) {
		return texts(event.LeaseExpired, event.MaxRuntime)(raw, row)
	}
	return texts()(raw, row)
}

// quoted returns v in JSON as the ledger writes it.
func quoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// bodies mutates the body that is stored with the event, or adds one.
func (m *mutator) bodies() {
	pos := m.recording.events[m.i][colPos]
	k := slices.IndexFunc(m.recording.bodies, func(b []any) bool { return b[0] == pos })
	if k < 0 {
		name := string(m.events[m.i].Job)
		salt, body := []byte(nil), []byte("secret") // the result of the job that was erased
		if m.events[m.i].Kind() == event.KindEnqueued {
			salt, body = []byte("salt of "+name[23:]), []byte("payload of "+name[23:])
		}
		m.add("body", "put there", func(s *recording) { s.bodies = append(s.bodies, []any{pos, any(salt), body}) })
		return
	}
	row := m.recording.bodies[k]
	body := row[2].([]byte)
	values := map[string][]any{"salt": {[]byte("another"), []byte{}, nil}, "body": {append([]byte("x"), body...),
		[]byte("x")}}
	if len(body) > 0 {
		values["body"] = append(values["body"], []byte{}, body[1:])
	}
	for column, name := range []string{"", "salt", "body"} {
		for n, v := range values[name] {
			if !bytes.Equal(asBytes(v), asBytes(row[column])) || v == nil && row[column] != nil {
				m.add(name, fmt.Sprint("another, ", n), func(s *recording) { s.bodies.set(k, column, v) })
			}
		}
	}
	m.add("body", "removed", func(s *recording) { s.bodies = slices.Delete(s.bodies, k, k+1) })
	m.add("body", "moved", func(s *recording) { s.bodies.set(k, 0, pos.(int64)+1) })
}

func asBytes(v any) []byte {
	b, _ := v.([]byte)
	return b
}

// whole mutates the event as a whole.
func (m *mutator) whole() {
	i, last := m.i, len(m.events)-1
	m.add("event", "removed", func(s *recording) { s.events = slices.Delete(s.events, i, i+1) })
	m.add("event", "removed, and the gap closed", func(s *recording) { s.remove(i) })
	m.add("event", "doubled at the end", func(s *recording) {
		s.events = append(s.events, slices.Clone(s.events[i]))
		s.sequence++
		s.events.set(last+1, colPos, s.sequence)
	})
	m.add("event", "doubled behind itself", func(s *recording) { s.double(i) })
	m.add("event", "cut off, with all behind it", func(s *recording) { s.events = s.events[:i] })
	m.add("event", "cut off, with all behind it and the counter", func(s *recording) {
		s.events, s.sequence = s.events[:i], int64(i)
		s.bodies = slices.DeleteFunc(s.bodies, func(b []any) bool { return b[0].(int64) > int64(i) })
	})
	for by := 1; by <= 3 && i+by <= last; by++ {
		j := i + by
		m.add("event", "exchanged with the next but "+strconv.Itoa(by-1), func(s *recording) { s.exchange(i, j) })
		m.add("event", "exchanged with the next but "+strconv.Itoa(by-1)+", and their times kept",
			func(s *recording) {
				s.exchange(i, j)
				s.swap(i, j, colAt)
			})
		if m.events[i].N == m.events[j].N && m.events[i].Seq*m.events[j].Seq != 0 {
			m.add("event", "exchanged with the next but "+strconv.Itoa(by-1)+", and their times and seqs kept",
				func(s *recording) {
					s.exchange(i, j)
					s.swap(i, j, colAt)
					s.swap(i, j, colSeq)
				})
		}
	}
}

func (s *recording) swap(i, j, column int) {
	a, b := s.events[i][column], s.events[j][column]
	s.events.set(i, column, b)
	s.events.set(j, column, a)
}

// exchange swaps two events and their bodies, and renumbers the events of their jobs.
func (s *recording) exchange(i, j int) {
	s.events[i], s.events[j] = s.events[j], s.events[i]
	s.renumber(func(pos int64) int64 {
		switch pos {
		case int64(i + 1):
			return int64(j + 1)
		case int64(j + 1):
			return int64(i + 1)
		}
		return pos
	})
}

// remove removes the event, and closes the gaps in pos and in the job's seq.
func (s *recording) remove(i int) {
	row := s.events[i]
	s.events = slices.Delete(s.events, i, i+1)
	s.bodies = slices.DeleteFunc(s.bodies, func(b []any) bool { return b[0] == row[colPos] })
	s.sequence--
	s.shiftSeq(row, i, -1)
	s.renumber(func(pos int64) int64 {
		if pos > int64(i+1) {
			return pos - 1
		}
		return pos
	})
}

// double inserts a copy after the event, and renumbers pos and the job's seq.
func (s *recording) double(i int) {
	row := slices.Clone(s.events[i])
	s.events = slices.Insert(s.events, i+1, row)
	s.sequence++
	s.shiftSeq(row, i+1, 1)
	s.renumber(func(pos int64) int64 {
		if pos > int64(i+1) {
			return pos + 1
		}
		return pos
	})
	s.events.set(i+1, colPos, int64(i+2))
}

// shiftSeq moves the seqs of a job from event i on.
func (s *recording) shiftSeq(of []any, i int, by int64) {
	if of[colSeq] == nil {
		return
	}
	for k := i; k < len(s.events); k++ {
		if seq, ok := s.events[k][colSeq].(int64); ok && s.events[k][colJob] == of[colJob] {
			s.events.set(k, colSeq, seq+by)
		}
	}
}

// renumber gives each event, job and body the pos that to returns for it.
func (s *recording) renumber(to func(int64) int64) {
	for k := range s.events {
		if pos := s.events[k][colPos].(int64); to(pos) != pos {
			s.events.set(k, colPos, to(pos))
		}
		if n, ok := s.events[k][colJob].(int64); ok && to(n) != n {
			s.events.set(k, colJob, to(n))
		}
	}
	for k := range s.bodies {
		if pos := s.bodies[k][0].(int64); to(pos) != pos {
			s.bodies.set(k, 0, to(pos))
		}
	}
}
