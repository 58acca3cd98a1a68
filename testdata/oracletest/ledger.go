package oracletest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Row is a line of an answer, as the program prints it with --json. Its values are nil, strings, bools,
// numbers, lists and Rows.
type Row map[string]any

// Event is a line of an export.
type Event struct {
	Pos     int64          `json:"pos"`
	Job     string         `json:"job"`
	Seq     int64          `json:"seq"` // 0: it changes no state
	Kind    string         `json:"kind"`
	At      time.Time      `json:"at"`
	Actor   string         `json:"actor"`
	Worker  string         `json:"worker"`
	Token   string         `json:"token"`
	Attempt int            `json:"attempt"`
	From    string         `json:"from_state"`
	To      string         `json:"to_state"`
	Data    map[string]any `json:"data"`

	line  Row
	claim *Claim // that it begins or belongs to; nil: none
}

// Ledger is all events of a ledger. Now is when it is asked.
type Ledger struct {
	Events []*Event
	Now    time.Time

	claims []*Claim
	lived  map[Process]bool  // what is known of later: the processes that acted then
	queues map[string]string // by job
	first  map[string]*Event // by job: its enqueued event
	folded map[int64]map[string]*job
}

// Read reads the lines that export writes; now is when the ledger is asked.
func Read(export []byte, now time.Time) (*Ledger, error) {
	l := &Ledger{Now: now, folded: make(map[int64]map[string]*job)}
	lines := bufio.NewReader(bytes.NewReader(export))
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		e := new(Event)
		if err := json.Unmarshal(line, e); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(l.Events)+1, err)
		}
		if err := json.Unmarshal(line, &e.line); err != nil {
			return nil, err
		}
		if e.Pos == 0 { // a line about the export
			continue
		}
		for _, body := range []string{"payload", "payload_base64", "result", "result_base64", "salt"} {
			delete(e.line, body)
		}
		l.Events = append(l.Events, e)
	}
	l.findClaims()
	return l, nil
}

// Until is the ledger as it was after the event pos, asked at a time. Of later events it only knows which
// processes lived on.
func (l *Ledger) Until(pos int64, now time.Time) *Ledger {
	past := &Ledger{Now: now, folded: make(map[int64]map[string]*job), lived: make(map[Process]bool)}
	for _, e := range l.Events {
		if e.Pos <= pos {
			copied := *e
			past.Events = append(past.Events, &copied)
		} else if p, ok := l.acting(e); ok {
			past.lived[p] = true
		}
	}
	past.findClaims()
	return past
}

// Tail is the position of the last event.
func (l *Ledger) Tail() int64 {
	if len(l.Events) == 0 {
		return 0
	}
	return l.Events[len(l.Events)-1].Pos
}

// Moment is the ledger right after the event Pos, looked at at the time At.
type Moment struct {
	Pos int64
	At  time.Time
}

// At is the moment that text names: a time, pos:N, or "" for now.
func (l *Ledger) At(text string) (m Moment) {
	pos, byPos := strings.CutPrefix(text, "pos:")
	switch {
	case text == "":
		return Moment{l.Tail(), l.Now}
	case byPos:
		m.Pos, _ = strconv.ParseInt(pos, 10, 64)
		for _, e := range l.Events {
			if e.Pos <= m.Pos {
				m.At = e.At
			}
		}
		return m
	}
	m.At = timeOf(text)
	for _, e := range l.Events {
		if !e.At.After(m.At) {
			m.Pos = e.Pos
		}
	}
	return m
}

// Window is the events from one moment to another, both included. The zero Queue and Worker mean all.
type Window struct {
	After, Until int64     // the events whose pos is greater than After and at most Until
	From, To     time.Time // when it begins and ends
	Queue        string
	Worker       string // the name of a worker, or the boot of one process

	ends   bool      // its end is named
	begins time.Time // From, or where that names an event the time of the one before it
}

// Between is the window from the moment that from names to that of to; "": from the first event, to now.
func (l *Ledger) Between(from, to string) (w Window) {
	w.Until, w.To = l.Tail(), l.Now
	if len(l.Events) > 0 {
		w.From = l.Events[0].At
	}
	switch {
	case from == "":
	case strings.HasPrefix(from, "pos:"):
		m := l.At(from)
		w.After, w.From = m.Pos-1, m.At
		w.begins = l.At(fmt.Sprintf("pos:%d", w.After)).At
	default:
		w.From = timeOf(from)
		w.begins = w.From
		for _, e := range l.Events {
			if e.At.Before(w.From) {
				w.After = e.Pos
			}
		}
	}
	if to != "" {
		m := l.At(to)
		w.Until, w.To, w.ends = m.Pos, m.At, true
	}
	return w
}

// has reports whether the window has the event at pos.
func (w Window) has(pos int64) bool { return pos > w.After && pos <= w.Until }

// of reports whether the window is about the queue.
func (w Window) of(queue string) bool { return w.Queue == "" || w.Queue == queue }

// by reports whether the window is about the process.
func (w Window) by(p Process) bool { return w.Worker == "" || w.Worker == p.Name || w.Worker == p.Boot }

// within yields the events of the window.
func (l *Ledger) within(w Window) (events []*Event) {
	for _, e := range l.Events {
		if w.has(e.Pos) {
			events = append(events, e)
		}
	}
	return events
}

// text, number and time are fields of the event's data; the zero value where it is absent or null.
func (e *Event) text(name string) string {
	s, _ := e.Data[name].(string)
	return s
}

func (e *Event) number(name string) float64 {
	n, _ := e.Data[name].(float64)
	return n
}

func (e *Event) time(name string) time.Time {
	if s := e.text(name); s != "" {
		return timeOf(s)
	}
	return time.Time{}
}

func (e *Event) list(name string) (texts []string) {
	list, _ := e.Data[name].([]any)
	for _, one := range list {
		if s, ok := one.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// timeOf reads a time of an export. Any other text is a fault of the test.
func timeOf(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return at.UTC()
}

// stamp is a time as the program prints it; nil: none.
func stamp(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// some is a pointer to text; nil if it is empty.
func some(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// seconds is a duration as a number of seconds.
func seconds(d time.Duration) float64 { return d.Seconds() }

// percentile is the nearest rank: the smallest value that at least so many of a hundred do not exceed.
func percentile(values []time.Duration, percent int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := 1
	for rank*100 < percent*len(sorted) {
		rank++
	}
	return sorted[rank-1]
}
