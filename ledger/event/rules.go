package event

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// rule is what the tag of a field says: `event:"name"` and, after commas, what its value must be:
//
//	required   it is there
//	label      part of a lane: printable ASCII without spaces; so is group, with any other characters
//	digest     the hex of a SHA-256
//	job        the id of a job
//	reference  a job that is waited for, with the end that is, see [ParseReference]
//	oneof=a|b  one of these words, where it is there
//	min=, max= the bounds of a number, or a duration such as 744h; 0 and 2^53 for those that name none
//
// Of a list each entry is meant, which is not empty.
type rule struct {
	name        string
	index       []int
	required    bool
	format      func(string) bool
	words       []string
	least, most int64
	unbounded   bool // it has no min, so a number that may be absent may be any
}

var formats = map[string]func(string) bool{"label": isLabel, "group": isGroup, "digest": isDigest,
	"job":       isULID,
	"reference": func(text string) bool { _, _, err := ParseReference(text); return err == nil }}

// rulesOf are the rules of each kind, in the order of the fields.
var rulesOf = sync.OnceValue(func() [][]rule {
	all := make([][]rule, len(kinds))
	for _, k := range Kinds() {
		all[k] = rulesIn(reflect.TypeOf(kinds[k].body()).Elem(), nil)
	}
	return all
})

func rulesIn(body reflect.Type, index []int) (rules []rule) {
	for i := range body.NumField() {
		field := body.Field(i)
		at := append(slices.Clone(index), i)
		if tag, ok := field.Tag.Lookup("event"); ok {
			rules = append(rules, newRule(tag, at, field.Type == reflect.TypeFor[time.Duration]()))
		} else {
			rules = append(rules, rulesIn(field.Type, at)...)
		}
	}
	return rules
}

func newRule(tag string, index []int, duration bool) rule {
	name, rest, _ := strings.Cut(tag, ",")
	r := rule{name: name, index: index, most: 1 << 53, unbounded: !strings.Contains(rest, "min=")}
	if duration {
		r.most = 1 << 62
	}
	number := func(text string) int64 {
		if d, err := time.ParseDuration(text); err == nil {
			return int64(d)
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("event: the tag %q", tag))
		}
		return n
	}
	for part := range strings.SplitSeq(rest, ",") {
		switch key, value, _ := strings.Cut(part, "="); key {
		case "":
		case "required":
			r.required = true
		case "oneof":
			r.words = strings.Split(value, "|")
		case "min":
			r.least = number(value)
		case "max":
			r.most = number(value)
		default:
			if r.format = formats[key]; r.format == nil {
				panic(fmt.Sprintf("event: the tag %q", tag))
			}
		}
	}
	return r
}

// check adds to s what the field v of a body must not be.
func (r *rule) check(s *validator, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		r.text(s, v.String(), r.required)
	case reflect.Slice:
		if r.required && v.Len() == 0 {
			s.fail(r.name, "")
		}
		for i := range v.Len() {
			if r.format != nil {
				r.text(s, v.Index(i).String(), true)
			}
		}
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n < r.least || n > r.most {
			s.fail(r.name, n)
		}
	case reflect.Float64:
		if n := v.Float(); !(n >= float64(r.least) && n <= float64(r.most)) { // NaN is neither
			s.fail(r.name, n)
		}
	case reflect.Struct:
		if r.required && v.IsZero() { // a time
			s.fail(r.name, "")
		}
	}
}

func (r *rule) text(s *validator, text string, required bool) {
	switch {
	case text == "" && !required:
	case text == "", r.format != nil && !r.format(text), r.words != nil && !slices.Contains(r.words, text):
		s.fail(r.name, text)
	}
}

// MissingField returns the name of the first field of b that is required and empty; "" if there is none.
func MissingField(b Body) string {
	body := reflect.ValueOf(b).Elem()
	for _, r := range rulesOf()[b.Kind()] {
		if v := body.FieldByIndex(r.index); (r.required || r.least > 0) && (v.IsZero() ||
			v.Kind() == reflect.Slice && v.Len() == 0) {
			return r.name
		}
	}
	return ""
}

// Said returns the text of the field of b that is stored by this name; "" if it has no such text.
func Said(b Body, name string) string {
	rules := rulesOf()[b.Kind()]
	for i := range rules {
		if rules[i].name == name {
			if v := reflect.ValueOf(b).Elem().FieldByIndex(rules[i].index); v.Kind() == reflect.String {
				return v.String()
			}
		}
	}
	return ""
}
