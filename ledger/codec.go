package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"
	"unicode/utf8"
)

// fields walks the JSON fields of a body, writing or reading each. There are two forms of the same fields:
// the stored one is compact (times are integer microseconds; null, zero and empty are left out), the public one
// is for people and exports (times are RFC 3339 UTC; every field is there). Both are read alike.
// Durations are decimal seconds in both.
type fields struct {
	out    []byte   // writing: the object so far
	public bool     // writing: the public form
	in     []member // reading: the members not yet taken
	read   bool
	digest []byte // stored: the bytes of the body's digest, which have a column of their own
	err    error  // the first one
}

type member struct {
	key string
	raw []byte
}

// encode returns the stored form of b: a JSON object, or nothing where it would be empty, and the bytes of the
// digest in b, if it has one.
func encode(b Body) (data, digest []byte) {
	f := fields{out: []byte{'{'}}
	b.fields(&f)
	if len(f.out) == 1 {
		return nil, f.digest
	}
	return append(f.out, '}'), f.digest
}

// appendPublic appends the public form of b, an event's body by w, to dst.
func appendPublic(dst []byte, b Body, w Worker) []byte {
	f := fields{out: append(dst, '{'), public: true}
	b.fields(&f)
	if b.Kind().showsProcess() {
		w.fields(&f)
	}
	return append(f.out, '}')
}

// decode reads a body of kind k from data, in either form, and the process fields into w. digest is what stands in
// the column of that name.
func decode(k Kind, data, digest []byte, w *Worker) (Body, error) {
	if !k.known() {
		return nil, fmt.Errorf("%w: %d", ErrUnknownKind, int(k))
	}
	b := kinds[k].body()
	f := reading(data)
	f.digest = digest
	b.fields(&f)
	if k.showsProcess() {
		w.fields(&f)
	}
	if f.err == nil && f.digest != nil {
		f.err = errors.New("a digest that belongs to no field, or is none")
	}
	if err := f.end(); err != nil {
		return nil, fmt.Errorf("%w: data of %s: %w", ErrDamaged, k, err)
	}
	return b, nil
}

// reading returns fields that read the JSON object in data; nothing is the empty object.
func reading(data []byte) fields {
	f := fields{read: true}
	if len(data) > 0 {
		f.in, f.err = members(data)
	}
	return f
}

// end returns the first error of a reading; a field that nobody took is one.
func (f *fields) end() error {
	if f.err == nil && len(f.in) > 0 {
		f.err = fmt.Errorf("unknown field %q, or one that stands there twice", f.in[0].key)
	}
	return f.err
}

// fields walks what the public form of claimed, worker_started and worker_stopped says of the process.
func (w *Worker) fields(f *fields) {
	f.text("boot", &w.Boot)
	f.text("host", &w.Host)
	f.int("pid", &w.PID)
	f.text("version", &w.Version)
}

// member begins a field when writing, unless it is empty and stored; when reading it takes the field's raw value.
func (f *fields) member(key string, empty bool) (raw []byte, ok bool) {
	if f.read {
		for i, m := range f.in {
			if m.key == key {
				f.in = slices.Delete(f.in, i, i+1)
				return m.raw, string(m.raw) != "null"
			}
		}
		return nil, false
	}
	if empty && !f.public {
		return nil, false
	}
	if f.out[len(f.out)-1] != '{' {
		f.out = append(f.out, ',')
	}
	f.out = append(append(append(f.out, '"'), key...), '"', ':')
	if empty {
		f.out = append(f.out, "null"...)
	}
	return nil, !empty
}

func (f *fields) fail(key string, raw []byte, want string) {
	if f.err == nil {
		f.err = fmt.Errorf("field %q: got %.60s, want %s", key, raw, want)
	}
}

func (f *fields) text(key string, v *string) {
	raw, ok := f.member(key, *v == "")
	switch {
	case !ok:
	case !f.read:
		f.out = appendText(f.out, *v)
	default:
		s, err := parseText(raw)
		if err != nil {
			f.fail(key, raw, "a string")
		}
		*v = s
	}
}

// sha256 is the hex of a SHA-256. Stored, its bytes stand in a column of their own, at half the size; a body has at
// most one.
func (f *fields) sha256(key string, v *string) {
	switch {
	case f.read && len(f.digest) == sha256.Size:
		*v, f.digest = hex.EncodeToString(f.digest), nil
		return
	case !f.read && !f.public:
		if sum, err := hex.DecodeString(*v); err == nil && len(sum) == sha256.Size && hex.EncodeToString(sum) == *v {
			f.digest = sum
			return
		}
	}
	f.text(key, v) // as it is
}

func (f *fields) int64(key string, v *int64) {
	raw, ok := f.member(key, *v == 0 && !f.public)
	switch {
	case !ok:
	case !f.read:
		f.out = strconv.AppendInt(f.out, *v, 10)
	default:
		n, err := parseInt(raw)
		if err != nil {
			f.fail(key, raw, "an integer")
		}
		*v = n
	}
}

func (f *fields) int(key string, v *int) {
	n := int64(*v)
	f.int64(key, &n)
	*v = int(n)
}

// code is an exit code: a nil pointer is null, zero is a value.
func (f *fields) code(key string, v **int) {
	raw, ok := f.member(key, *v == nil)
	switch {
	case !ok:
	case !f.read:
		f.out = strconv.AppendInt(f.out, int64(**v), 10)
	default:
		n, err := parseInt(raw)
		if err != nil {
			f.fail(key, raw, "an integer")
		}
		c := int(n)
		*v = &c
	}
}

func (f *fields) number(key string, v **float64) {
	raw, ok := f.member(key, *v == nil)
	switch {
	case !ok:
	case !f.read:
		f.out = strconv.AppendFloat(f.out, **v, 'f', -1, 64)
	default:
		x, err := parseFloat(raw)
		if err != nil {
			f.fail(key, raw, "a number")
		}
		*v = &x
	}
}

func (f *fields) flag(key string, v *bool) {
	raw, ok := f.member(key, !*v && !f.public)
	switch {
	case !ok:
	case !f.read:
		f.out = strconv.AppendBool(f.out, *v)
	default:
		*v = string(raw) == "true"
		if !*v && string(raw) != "false" {
			f.fail(key, raw, "true or false")
		}
	}
}

func (f *fields) time(key string, v *time.Time) {
	raw, ok := f.member(key, v.IsZero())
	switch {
	case !ok:
	case f.read:
		t, err := parseTime(raw)
		if err != nil {
			f.fail(key, raw, "integer microseconds or an RFC 3339 time in UTC")
		}
		*v = t
	case f.public:
		f.out = appendTime(f.out, *v)
	default:
		f.out = strconv.AppendInt(f.out, v.UnixMicro(), 10)
	}
}

func (f *fields) duration(key string, v *time.Duration) {
	raw, ok := f.member(key, *v == 0)
	switch {
	case !ok:
	case !f.read:
		f.out = appendSeconds(f.out, *v)
	default:
		s, err := parseFloat(raw)
		if err != nil || math.Abs(s) > maxSeconds {
			f.fail(key, raw, "seconds")
			return
		}
		*v = time.Duration(math.Round(s*1e6)) * time.Microsecond
	}
}

func (f *fields) list(key string, v *[]string) {
	raw, ok := f.member(key, len(*v) == 0 && !f.public)
	switch {
	case !ok:
	case !f.read:
		f.out = append(f.out, '[')
		for i, s := range *v {
			if i > 0 {
				f.out = append(f.out, ',')
			}
			f.out = appendText(f.out, s)
		}
		f.out = append(f.out, ']')
	default:
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil {
			f.fail(key, raw, "a list of strings")
		}
		if len(list) > 0 {
			*v = list
		}
	}
}

func (f *fields) dict(key string, v *map[string]string) {
	raw, ok := f.member(key, len(*v) == 0 && !f.public)
	switch {
	case !ok:
	case !f.read:
		names := make([]string, 0, len(*v))
		for name := range *v {
			names = append(names, name)
		}
		sort.Strings(names)
		f.out = append(f.out, '{')
		for i, name := range names {
			if i > 0 {
				f.out = append(f.out, ',')
			}
			f.out = append(appendText(f.out, name), ':')
			f.out = appendText(f.out, (*v)[name])
		}
		f.out = append(f.out, '}')
	default:
		dict, err := parseDict(raw)
		if err != nil {
			f.fail(key, raw, "an object of strings, each name once")
		}
		if len(dict) > 0 {
			*v = dict
		}
	}
}

// parseDict is stricter than package encoding/json, which takes null for "" and the last of two values.
func parseDict(raw []byte) (map[string]string, error) {
	list, err := members(raw)
	if err != nil {
		return nil, err
	}
	dict := make(map[string]string, len(list))
	for _, m := range list {
		text, err := parseText(m.raw)
		if err != nil {
			return nil, err
		}
		dict[m.key] = text
	}
	if len(dict) < len(list) {
		return nil, errors.New("a name stands there twice")
	}
	return dict, nil
}

// appendText appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as in encoding/json.
func appendText(dst []byte, s string) []byte {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= ' ' && s[i] != '"' && s[i] != '\\' && s[i] < utf8.RuneSelf
	}
	if plain {
		return append(append(append(dst, '"'), s...), '"')
	}
	quoted, _ := json.Marshal(s) // a string always marshals
	return append(dst, quoted...)
}

func parseText(raw []byte) (string, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", errors.New("not a string")
	}
	for _, c := range raw[1 : len(raw)-1] {
		if c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			var s string
			err := json.Unmarshal(raw, &s)
			return s, err
		}
	}
	return string(raw[1 : len(raw)-1]), nil
}

const publicTime = "2006-01-02T15:04:05.000000Z"

// FormatTime returns t as people and exports see it: RFC 3339 in UTC with microseconds.
func FormatTime(t time.Time) string { return t.UTC().Format(publicTime) }

func appendTime(dst []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(dst, '"'), publicTime), '"')
}

func parseTime(raw []byte) (time.Time, error) {
	var us int64
	if len(raw) > 0 && raw[0] == '"' {
		s, err := parseText(raw)
		if err != nil {
			return time.Time{}, err
		}
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return time.Time{}, err
		}
		us = Micros(t)
	} else {
		var err error
		if us, err = parseInt(raw); err != nil {
			return time.Time{}, err
		}
	}
	t := FromMicros(us)
	if year := t.Year(); year < 1 || year > 9999 {
		return time.Time{}, errors.New("beyond the years that a time can be written in")
	}
	return t, nil
}

// maxSeconds is the longest duration, which is also exact to the microsecond as a float64.
const maxSeconds = 1 << 53 / 1e6

// parseInt and parseFloat take what JSON calls a number, which is less than what package strconv takes.
func parseInt(raw []byte) (int64, error) {
	if !isNumber(raw) {
		return 0, errors.New("not a number")
	}
	return strconv.ParseInt(string(raw), 10, 64)
}

func parseFloat(raw []byte) (float64, error) {
	if !isNumber(raw) {
		return 0, errors.New("not a number")
	}
	return strconv.ParseFloat(string(raw), 64)
}

func isNumber(raw []byte) bool {
	s := scanner{data: raw}
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		_ = s.take('+') || s.take('-')
		if !s.digits() {
			return false
		}
	}
	return s.i == len(raw)
}

// appendSeconds appends d as decimal seconds without needless zeros, exact to the microsecond.
func appendSeconds(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(d.Microseconds())/1e6, 'f', -1, 64)
}

// members splits the JSON object in data into its keys and raw values. It is strict where the codec relies on it
// and leaves the inside of a value to the one who reads it.
func members(data []byte) ([]member, error) {
	s := scanner{data: data}
	s.space()
	if !s.take('{') {
		return nil, errors.New("not a JSON object")
	}
	list := make([]member, 0, 8)
	for s.space(); !s.take('}'); s.space() {
		if len(list) > 0 {
			if s.i == len(data) {
				return nil, errNoEnd
			}
			if !s.take(',') {
				return nil, errors.New("a comma is missing")
			}
			s.space()
		}
		rawKey, err := s.value()
		if err != nil {
			return nil, err
		}
		key, err := parseText(rawKey)
		if err != nil {
			return nil, fmt.Errorf("key %.40s: %w", rawKey, err)
		}
		if s.space(); !s.take(':') {
			return nil, errors.New("a colon is missing")
		}
		s.space()
		raw, err := s.value()
		if err != nil {
			return nil, err
		}
		list = append(list, member{key, raw})
	}
	if s.space(); s.i != len(data) {
		return nil, errors.New("text after the JSON object")
	}
	return list, nil
}

var errNoEnd = errors.New("the JSON object has no end")

type scanner struct {
	data []byte
	i    int
}

func (s *scanner) space() {
	for s.i < len(s.data) && (s.data[s.i] == ' ' || s.data[s.i] == '\t' || s.data[s.i] == '\n' || s.data[s.i] == '\r') {
		s.i++
	}
}

func (s *scanner) take(c byte) bool {
	if s.i < len(s.data) && s.data[s.i] == c {
		s.i++
		return true
	}
	return false
}

// digits takes one digit or more.
func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.data) && s.data[s.i] >= '0' && s.data[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// value takes one JSON value and returns its raw bytes.
func (s *scanner) value() ([]byte, error) {
	start, depth, quoted := s.i, 0, false
	for ; s.i < len(s.data); s.i++ {
		c := s.data[s.i]
		switch {
		case quoted && c == '\\':
			s.i++
		case c == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				s.i++
				return s.data[start:s.i], nil
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return s.atom(start)
			}
			if depth--; depth == 0 {
				s.i++
				return s.data[start:s.i], nil
			}
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ':'):
			return s.atom(start)
		}
	}
	return nil, errNoEnd
}

func (s *scanner) atom(start int) ([]byte, error) {
	if start == s.i {
		return nil, errors.New("a value is missing")
	}
	return s.data[start:s.i], nil
}
