package event

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"jobledger/ledger/jsonscan"
)

// fields walks the JSON fields of a body, writing or reading each. There are two forms of the same fields:
// the stored one is compact (times are integer microseconds; null, zero and empty are left out), the public
// one is for people and exports (times are RFC 3339 UTC; every field is there). Both are read alike.
// Durations are decimal seconds in both.
type fields struct {
	out    []byte           // writing: the object so far
	public bool             // writing: the public form
	ascii  bool             // writing: every character above U+007F is escaped
	sparse bool             // writing: from here on the public form too leaves out what is empty
	in     jsonscan.Members // reading
	read   bool
	clone  bool   // reading: the texts must not keep in being what they are part of
	digest []byte // stored: the bytes of the body's digest, which have a column of their own
	err    error  // the first one
}

// AppendStored returns the stored form of b: a JSON object, or nothing where it would be empty, and the bytes
// of the digest in b, if it has one. The object uses the memory of dst, which is empty.
func AppendStored(dst []byte, b Body) (data, digest []byte) {
	f := fields{out: append(dst, '{')}
	b.fields(&f)
	if len(f.out) == 1 {
		return nil, f.digest
	}
	return append(f.out, '}'), f.digest
}

// AppendPublic appends the public form of b, an event's body by w, to dst.
func AppendPublic(dst []byte, b Body, w Worker) []byte { return appendPublic(dst, b, w, false) }

func appendPublic(dst []byte, b Body, w Worker, ascii bool) []byte {
	f := fields{out: append(dst, '{'), public: true, ascii: ascii}
	b.fields(&f)
	if f.sparse = false; b.Kind().ShowsProcess() {
		w.fields(&f)
	}
	return append(f.out, '}')
}

// Decode reads a body of kind k from data, in either form, and the process fields into w. digest is what
// stands in the column of that name. The texts in the body may be parts of data.
func Decode(k Kind, data string, digest []byte, w *Worker) (Body, error) {
	if !k.known() {
		return nil, fmt.Errorf("%w: %d", ErrUnknownKind, int(k))
	}
	b, process := kinds[k].body(), *w
	f := fields{read: true, in: jsonscan.InOrder(data), digest: digest}
	f.decode(b, &process)
	if f.in.AtEnd() && f.err == nil {
		*w = process
		return b, nil
	}
	b, process = kinds[k].body(), *w // in another order than it is written in, or wrong
	f = reading(data)
	f.digest = digest
	f.decode(b, &process)
	if err := f.end(); err != nil {
		return nil, fmt.Errorf("%w: data of %s: %w", ErrDamaged, k, err)
	}
	*w = process
	return b, nil
}

func (f *fields) decode(b Body, w *Worker) {
	b.fields(f)
	if b.Kind().ShowsProcess() {
		w.fields(f)
	}
	if f.err == nil && f.digest != nil {
		f.err = errors.New("a digest that belongs to no field, or is not valid")
	}
}

// reading returns fields that read the JSON object in data, in any order; nothing is the empty object.
func reading(data string) fields {
	f := fields{read: true}
	if len(data) > 0 {
		f.err = f.in.Split(data)
	}
	return f
}

// end returns the first error; a field that was not taken is one.
func (f *fields) end() error {
	if key, left := f.in.Left(); f.err == nil && left {
		f.err = fmt.Errorf("unknown field %q, or one that is given twice", key)
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

// member begins a field when writing, unless it is empty and stored; when reading it takes the field's raw
// value.
func (f *fields) member(key string, empty bool) (raw string, ok bool) {
	if f.read {
		raw, ok = f.in.Take(key)
		return raw, ok && raw != "null"
	}
	if empty && (!f.public || f.sparse) {
		return "", false
	}
	if f.out[len(f.out)-1] != '{' {
		f.out = append(f.out, ',')
	}
	f.out = append(append(append(f.out, '"'), key...), '"', ':')
	if empty {
		f.out = append(f.out, "null"...)
	}
	return "", !empty
}

func (f *fields) fail(key, raw, want string) {
	if f.err == nil {
		f.err = fmt.Errorf("field %q: got %.60s, want %s", key, raw, want)
	}
}

func (f *fields) text(key string, v *string) {
	raw, ok := f.member(key, *v == "")
	switch {
	case !ok:
	case !f.read:
		f.out = appendText(f.out, *v, f.ascii)
	default:
		s, err := jsonscan.Text(raw)
		if err != nil {
			f.fail(key, raw, "a string")
		}
		if *v = s; f.clone {
			*v = strings.Clone(s)
		}
	}
}

// sha256 is the hex of a SHA-256. Stored, its bytes stand in a column of their own, at half the size; a body
// has at most one.
func (f *fields) sha256(key string, v *string) {
	switch {
	case f.read && len(f.digest) == sha256.Size:
		*v, f.digest = hex.EncodeToString(f.digest), nil
		return
	case !f.read && !f.public:
		sum, err := hex.DecodeString(*v)
		if err == nil && len(sum) == sha256.Size && hex.EncodeToString(sum) == *v {
			f.digest = sum
			return
		}
	}
	f.text(key, v) // as it is
}

func (f *fields) int64(key string, v *int64) {
	raw, ok := f.member(key, *v == 0 && (!f.public || f.sparse))
	switch {
	case !ok:
	case !f.read:
		f.out = strconv.AppendInt(f.out, *v, 10)
	default:
		n, err := jsonscan.Int(raw)
		if err != nil {
			f.fail(key, raw, "an integer")
		}
		*v = n
	}
}

func (f *fields) int(key string, v *int) {
	n := int64(*v)
	if f.int64(key, &n); f.read { // an event that is written may be shared
		*v = int(n)
	}
}

// code is an exit code: a nil pointer is null, zero is a value.
func (f *fields) code(key string, v **int) {
	raw, ok := f.member(key, *v == nil)
	switch {
	case !ok:
	case !f.read:
		f.out = strconv.AppendInt(f.out, int64(**v), 10)
	default:
		n, err := jsonscan.Int(raw)
		if err != nil {
			f.fail(key, raw, "an integer")
		}
		*v = new(int(n))
	}
}

func (f *fields) number(key string, v **float64) {
	raw, ok := f.member(key, *v == nil)
	switch {
	case !ok:
	case !f.read:
		f.out = strconv.AppendFloat(f.out, **v, 'f', -1, 64)
	default:
		x, err := jsonscan.Float(raw)
		if err != nil {
			f.fail(key, raw, "a number")
		}
		*v = &x
	}
}

func (f *fields) flag(key string, v *bool) {
	raw, ok := f.member(key, !*v && (!f.public || f.sparse))
	switch {
	case !ok:
	case !f.read:
		f.out = strconv.AppendBool(f.out, *v)
	default:
		*v = raw == "true"
		if !*v && raw != "false" {
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

// timeText is time in its public form, even if it is stored: the views convert no field that is newer than
// they are.
func (f *fields) timeText(key string, v *time.Time) {
	public := f.public
	f.public = public || !v.IsZero()
	f.time(key, v)
	f.public = public
}

func (f *fields) duration(key string, v *time.Duration) {
	raw, ok := f.member(key, *v == 0)
	switch {
	case !ok:
	case !f.read:
		f.out = appendSeconds(f.out, *v)
	default:
		s, err := jsonscan.Float(raw)
		if err != nil || math.Abs(s) > maxSeconds {
			f.fail(key, raw, "seconds")
			return
		}
		*v = time.Duration(math.Round(s*1e6)) * time.Microsecond
	}
}

func (f *fields) list(key string, v *[]string) {
	raw, ok := f.member(key, len(*v) == 0 && (!f.public || f.sparse))
	switch {
	case !ok:
	case !f.read:
		f.out = append(f.out, '[')
		for i, s := range *v {
			if i > 0 {
				f.out = append(f.out, ',')
			}
			f.out = appendText(f.out, s, f.ascii)
		}
		f.out = append(f.out, ']')
	default:
		list, err := jsonscan.List(raw)
		if err != nil {
			f.fail(key, raw, "a list of strings")
		}
		if len(list) > 0 {
			*v = list
		}
	}
}

func (f *fields) dict(key string, v *map[string]string) {
	raw, ok := f.member(key, len(*v) == 0 && (!f.public || f.sparse))
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
			f.out = append(appendText(f.out, name, f.ascii), ':')
			f.out = appendText(f.out, (*v)[name], f.ascii)
		}
		f.out = append(f.out, '}')
	default:
		dict, err := jsonscan.Dict(raw)
		if err != nil {
			f.fail(key, raw, "an object of strings, each name once")
		}
		if len(dict) > 0 {
			*v = dict
		}
	}
}

func appendTime(dst []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(dst, '"'), publicTime), '"')
}

// appendSeconds appends d as decimal seconds without needless zeros, exact to the microsecond.
func appendSeconds(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(d.Microseconds())/1e6, 'f', -1, 64)
}

// maxSeconds is the longest duration, which is also exact to the microsecond as a float64.
const maxSeconds = 1 << 53 / 1e6
