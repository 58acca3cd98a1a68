package segment

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/ledger/event"
)

// summary gathers what the summary of a file says: enough to know that a file need not be read, and nothing
// that an answer about a job rests on. Its text follows from the lines alone, whatever the version of Go, so
// its digest never changes. It is an object of JSON in ASCII, with the names in order:
//
//	lo, hi, first_at, last_at  the range, and the times of its first and last event
//	kinds                      how many events of each kind the range has
//	days                       how many events, and how many of five kinds, by day in UTC
//	moved                      by queue and state: how many jobs more, or fewer, at hi than at lo. Added up
//	                           over all files: how many jobs are in that state, whether or not they left
//	actors, error_codes, groups, hosts, queues, schedules, tag_keys, workers
//	                           the names that its lines have, carried-in ones too; null for more than 256
//	ids                        the first and the last id of a job; null where there is no job
//	bloom                      a Bloom filter in base64: see [summary.bloom]
type summary struct {
	kinds map[string]int64
	days  map[string]map[string]int64
	moved map[string]map[string]int64
	names map[string]map[string]bool // by what they are; nil: more than maxNames
	terms map[[16]byte]struct{}      // the begins of the SHA-256 of keys and tags

	number int64            // of the day of the last event, since 1970
	today  map[string]int64 // of that day
}

// maxNames is how many names of a sort a summary has at most.
const maxNames = 256

// sorts are what names are of.
var sorts = [...]string{"actors", "error_codes", "groups", "hosts", "queues", "schedules", "tag_keys",
	"workers"}

func newSummary() *summary {
	s := &summary{kinds: make(map[string]int64), days: make(map[string]map[string]int64),
		moved: make(map[string]map[string]int64), names: make(map[string]map[string]bool),
		terms: make(map[[16]byte]struct{})}
	for _, sort := range sorts {
		s.names[sort] = make(map[string]bool)
	}
	return s
}

// dayKinds are counted by day.
var dayKinds = [...]event.Kind{event.KindEnqueued, event.KindSucceeded, event.KindFailed, event.KindCancelled,
	event.KindReclaimed}

// add takes an event of a job in this queue, or an event without a job; own: it is in the file's range.
func (s *summary) add(e *event.Event, queue string, own bool) {
	s.name("actors", e.Actor)
	s.name("workers", e.Worker.Name)
	s.name("hosts", e.Worker.Host)
	s.name("queues", event.Said(e.Body, "queue"))
	s.name("schedules", cmp.Or(event.Said(e.Body, "schedule"), event.Said(e.Body, "name")))
	s.name("groups", event.Said(e.Body, "group"))
	s.name("error_codes", event.Said(e.Body, "error_code"))
	if b, ok := e.Body.(*event.Enqueued); ok {
		if b.Key != "" {
			s.term("key:" + b.Key)
		}
		for key, value := range b.Tags {
			s.name("tag_keys", key)
			s.term("tag:" + key + "=" + value)
		}
	}
	if own {
		s.count(e, queue)
	}
}

// count counts an event of the range.
func (s *summary) count(e *event.Event, queue string) {
	kind := e.Kind().String()
	s.kinds[kind]++
	day := s.day(e.At)
	day["events"]++
	if slices.Contains(dayKinds[:], e.Kind()) {
		day[kind]++
	}
	if !e.Kind().HasSeq() || e.From == e.To {
		return
	}
	moved := s.moved[queue]
	if moved == nil {
		moved = make(map[string]int64)
		s.moved[queue] = moved
	}
	move := func(state event.State, by int64) {
		if moved[state.String()] += by; moved[state.String()] == 0 {
			delete(moved, state.String())
		}
	}
	if e.From != 0 {
		move(e.From, -1)
	}
	move(e.To, 1)
}

// day returns the counts of the day of t.
func (s *summary) day(t time.Time) map[string]int64 {
	const seconds = 24 * 60 * 60
	number := t.Unix() / seconds
	if s.today != nil && number == s.number {
		return s.today
	}
	date := t.UTC().Format(time.DateOnly)
	if s.days[date] == nil {
		s.days[date] = map[string]int64{"events": 0}
		for _, k := range dayKinds {
			s.days[date][k.String()] = 0
		}
	}
	s.number, s.today = number, s.days[date]
	return s.today
}

// name adds a name of this sort; it ignores "".
func (s *summary) name(sort, name string) {
	names := s.names[sort]
	if name == "" || names == nil || names[name] {
		return
	}
	if names[strings.Clone(name)] = true; len(names) > maxNames {
		s.names[sort] = nil
	}
}

func (s *summary) term(text string) {
	sum := sha256.Sum256([]byte(text))
	s.terms[[16]byte(sum[:16])] = struct{}{}
}

// A Bloom filter has this many bits for each key and tag, up to a maximum size, and sets so many of them for
// each.
const (
	bloomBits   = 10
	bloomMost   = 4 << 20
	bloomHashes = 7
)

// bloom returns the filter over the texts "key:KEY" and "tag:NAME=VALUE". Of the SHA-256 of a text, the first
// eight bytes are the number a, and the next eight the number b, with its lowest bit set. The bits (a + i*b)
// modulo the number of bits, for i from 0 to 6, are set, with unsigned numbers of 64 bits; bit n is the one
// of value 1<<(n%8) in byte n/8. A text is in the file only if all of its bits are set.
func (s *summary) bloom() []byte {
	size := min(max(8, (len(s.terms)*bloomBits+7)/8), bloomMost/8)
	bits := make([]byte, size)
	for term := range s.terms {
		a, b := binary.BigEndian.Uint64(term[:8]), binary.BigEndian.Uint64(term[8:])|1
		for i := range uint64(bloomHashes) {
			n := (a + i*b) % uint64(8*size)
			bits[n/8] |= 1 << (n % 8)
		}
	}
	return bits
}

// encode returns the text of the summary of the file with these facts and job ids, the first and the last.
func (s *summary) encode(f *Facts, first, last string) []byte {
	object := map[string]any{"lo": f.Lo, "hi": f.Hi, "first_at": event.FormatTime(f.FirstAt),
		"last_at": event.FormatTime(f.LastAt), "kinds": s.kinds, "days": s.days, "moved": s.moved,
		"ids": map[string]any{"min": first, "max": last}, "bloom": base64.StdEncoding.EncodeToString(s.bloom())}
	for sort, names := range s.names {
		if object[sort] = slices.Sorted(maps.Keys(names)); names == nil {
			object[sort] = nil
		}
	}
	return append(appendJSON(nil, object), '\n')
}

// appendJSON appends a value of which a summary is made. An empty text is null.
func appendJSON(dst []byte, value any) []byte {
	switch v := value.(type) {
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case string:
		if v != "" {
			return event.AppendText(dst, v)
		}
	case []string:
		dst = append(dst, '[')
		for i, text := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, text)
		}
		return append(dst, ']')
	case map[string]any:
		return appendObject(dst, v)
	case map[string]int64:
		return appendObject(dst, v)
	case map[string]map[string]int64:
		return appendObject(dst, v)
	}
	return append(dst, "null"...)
}

func appendObject[V any](dst []byte, of map[string]V) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(of)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(append(event.AppendText(dst, name), ':'), of[name])
	}
	return append(dst, '}')
}
