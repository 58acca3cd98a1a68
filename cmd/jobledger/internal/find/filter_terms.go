package find

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/when"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
)

// Term is a term of a search: a word, or a key and its value.
type Term struct {
	Key   string // "": a word
	Value string
	Not   bool
}

// FindKeys are the keys of terms.
var FindKeys = []string{"queue", "state", "key", "tag", "worker", "error", "kind", "actor", "since", "until",
	"id", "pos", "group", "owner", "host", "version", "schedule", "text", "exit",
	"payload", "code", "by", "ended"}

// maxTerms is how many terms a search may have.
const maxTerms = 64

// Terms reads the terms of a search. They are separated by space; one in quotation marks may have some.
func Terms(text string) (terms []Term, err error) {
	rest := strings.TrimSpace(text)
	for rest != "" {
		t, keyed, quoted := Term{}, false, false
		if rest, t.Not = strings.CutPrefix(rest, "-"); rest == "" || rest[0] == ' ' {
			return nil, findError("there is no term after a -")
		}
		var b strings.Builder
		end := len(rest)
		for i, r := range rest {
			if r == '"' {
				quoted = !quoted
				continue
			}
			if !quoted && (r == ' ' || r == '\t' || r == '\n' || r == '\r') {
				end = i
				break
			}
			if !quoted && !keyed && r == ':' {
				keyed, t.Key = true, b.String()
				b.Reset()
				continue
			}
			b.WriteRune(r)
		}
		if quoted {
			return nil, findError("a quotation mark is not closed")
		}
		t.Value, rest = b.String(), strings.TrimSpace(rest[end:])
		if err := t.check(keyed); err != nil {
			return nil, err
		}
		if terms = append(terms, t); len(terms) > maxTerms {
			return nil, findError("more than %d terms", maxTerms)
		}
	}
	if len(terms) == 0 {
		return nil, findError("there is no term")
	}
	return terms, nil
}

// String is t as Terms reads it.
func (t Term) String() string {
	text := t.Value
	if strings.ContainsAny(text, " \t\n\r:") || t.Key == "" && strings.HasPrefix(text, "-") {
		text = `"` + text + `"`
	}
	if t.Key != "" {
		text = t.Key + ":" + text
	}
	if t.Not {
		text = "-" + text
	}
	return text
}

// check returns why a term is not valid.
func (t Term) check(keyed bool) error {
	number, err := strconv.ParseInt(t.Value, 10, 64)
	name, _, _ := strings.Cut(t.Value, "=")
	switch {
	case keyed && !slices.Contains(FindKeys, t.Key):
		return findError("there is no key %.40q; put a word that has a colon in quotation marks", t.Key)
	case t.Value == "" && keyed:
		return findError("%s: has no value", t.Key)
	case t.Value == "":
		return findError("a word is empty")
	case t.Not && (t.Key == "since" || t.Key == "until" || t.Key == "ended"):
		return findError("-%s is not a term: since:, until: and ended: have no -", t.Key)
	case t.Key == "ended" && t.Value == between:
		return findError("ended: has FROM, FROM..TO or ..TO")
	case t.Key == "pos" && (err != nil || number < 1):
		return findError("pos: has the position of an event, not %.40q", t.Value)
	case t.Key == "exit" && (err != nil || number < 0 || number > 255):
		return findError("exit: has a number from 0 to 255, not %.40q", t.Value)
	case t.Key == "tag" && name == "":
		return findError("tag: has K=V or K, not %.40q", t.Value)
	case t.Key == "state":
		if _, err := event.ParseState(t.Value); err != nil {
			return badName("find", "state", t.Value, StateNames())
		}
	case t.Key == "kind":
		if _, err := event.ParseKind(t.Value); err != nil {
			return badName("find", "kind", t.Value, KindNames())
		}
	}
	return nil
}

func findError(format string, args ...any) error {
	e := badInput("find", format, args...)
	e.Hint = `a term is WORD, KEY:VALUE, "in quotation marks", or - and one of these; the keys are ` +
		strings.Join(FindKeys, ", ")
	return e
}

// Narrow reports whether more is asked for than all jobs of some queues, which would be too many for an act.
// A search that cannot be read is more: its reader says why.
func Narrow(asked url.Values) bool {
	terms, err := Terms(asked.Get("find"))
	return asked.Get("find") != "" && (err != nil || slices.ContainsFunc(terms, func(t Term) bool {
		return t.Key != "queue"
	})) || slices.ContainsFunc(JobFields, func(field string) bool {
		return !slices.Contains([]string{"queue", "by", "find"}, field) && asked.Get(field) != ""
	})
}

// aspects are what the keys look at, but for since, until and ended.
var aspects = map[string]projection.Aspect{"": projection.OfWord, "queue": projection.OfQueue,
	"state": projection.OfState, "key": projection.OfKey, "tag": projection.OfTag,
	"worker": projection.OfWorker, "owner": projection.OfOwner, "host": projection.OfHost,
	"group": projection.OfGroup, "version": projection.OfVersion, "schedule": projection.OfSchedule,
	"exit": projection.OfExit, "text": projection.OfText, "error": projection.OfError, "kind": projection.OfKind,
	"actor": projection.OfActor, "id": projection.OfID, "pos": projection.OfPos, "code": projection.OfCode,
	"by": projection.OfPerson, "payload": projection.OfPayload}

// several are the keys of which a job can have several values. For the other keys, several terms of one key
// mean any of their values.
var several = []string{"", "tag", "text", "worker", "kind", "actor", "payload", "code", "by"}

// between is between the ends of a term ended:FROM..TO.
const between = ".."

// endsOf are the bounds of when jobs ended that a term ended:FROM..TO sets; either end may be left out, and
// .. with the second.
func endsOf(value string, now time.Time) (bounds []query.Bound, err error) {
	from, to, _ := strings.Cut(value, between)
	var w query.Window
	for _, end := range []struct {
		text string
		into **query.When
	}{{from, &w.From}, {to, &w.To}} {
		if end.text == "" {
			continue
		}
		moment, err := when.ReadSpoken("find", end.text, now)
		if err != nil {
			return nil, err
		}
		*end.into = &moment.When
		bounds = append(bounds, query.Bound{When: moment.When, Begin: end.into == &w.From, Finished: true})
	}
	if w.Check() != nil {
		return nil, findError("ended:%.60s ends before it begins", value)
	}
	return bounds, nil
}

// AsksPayloads reports whether f looks into payloads.
func AsksPayloads(f projection.Filter) bool {
	return slices.ContainsFunc(f.Match, func(m projection.Match) bool { return m.Of == projection.OfPayload })
}

// addFind adds what the field find says to f.
func addFind(asked url.Values, now time.Time, f *query.JobFilter) error {
	if !asked.Has("find") {
		return nil
	}
	terms, err := Terms(asked.Get("find"))
	if err != nil {
		return err
	}
	matchOf := make(map[string]int) // where the match of a key is, with one added
	for _, t := range terms {
		if t.Key == "since" || t.Key == "until" {
			moment, err := when.ReadSpoken("find", t.Value, now)
			if err != nil {
				return err
			}
			f.Bounds = append(f.Bounds, query.Bound{When: moment.When, Begin: t.Key == "since"})
			continue
		}
		if t.Key == "ended" {
			bounds, err := endsOf(t.Value, now)
			if err != nil {
				return err
			}
			f.Bounds = append(f.Bounds, bounds...)
			continue
		}
		i := matchOf[t.Key] - 1
		if i < 0 || t.Not || slices.Contains(several, t.Key) {
			f.Match = append(f.Match, projection.Match{Of: aspects[t.Key], Not: t.Not})
			if i = len(f.Match) - 1; !t.Not {
				matchOf[t.Key] = i + 1
			}
		}
		f.Match[i].Values = append(f.Match[i].Values, t.operand())
	}
	f.Match = slices.DeleteFunc(f.Match, func(m projection.Match) bool { return indexed(&f.Filter, m) })
	return nil
}

// Named returns the keys and ids that are asked for, which may be those of jobs that have left the ledger.
func Named(asked url.Values) (keys, ids []string) {
	if key := asked.Get("key"); key != "" {
		keys = append(keys, key)
	}
	terms, err := Terms(asked.Get("find"))
	if err != nil {
		return keys, nil // Jobs says so
	}
	for _, t := range terms {
		switch {
		case t.Not:
		case t.Key == "key":
			keys = append(keys, t.Value)
		case t.Key == "id":
			ids = append(ids, t.Value)
		}
	}
	return keys, ids
}

// operand is the value of t as a [projection.Match] has it.
func (t Term) operand() any {
	switch t.Key {
	case "kind":
		kind, _ := event.ParseKind(t.Value)
		return int64(kind)
	case "pos", "exit":
		pos, _ := strconv.ParseInt(t.Value, 10, 64)
		return pos
	}
	return t.Value
}

// indexed moves m into a field of f that says the same, which may have an index; false: there is none.
func indexed(f *projection.Filter, m projection.Match) bool {
	if m.Not {
		return false
	}
	var texts []string
	for _, v := range m.Values {
		text, _ := v.(string)
		texts = append(texts, text)
	}
	switch {
	case m.Of == projection.OfQueue && len(f.Queues) == 0:
		f.Queues = texts
	case m.Of == projection.OfState && len(f.States) == 0:
		for _, text := range texts {
			state, _ := event.ParseState(text)
			f.States = append(f.States, state)
		}
	case m.Of == projection.OfKey && f.Key == "" && len(texts) == 1:
		f.Key = texts[0]
	case m.Of == projection.OfGroup && f.Group == "" && len(texts) == 1:
		f.Group = texts[0]
	case m.Of == projection.OfError && f.Error == "" && len(texts) == 1:
		f.Error = texts[0]
	default:
		return false
	}
	return true
}
