package apidoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// inOrder is an object of JSON whose members are in the order of the text.
type inOrder[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

// UnmarshalJSON reads an object.
func (o *inOrder[T]) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return fmt.Errorf("%.20q is not an object: %w", text, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		m := member[T]{Name: fmt.Sprint(name)}
		if err := d.Decode(&m.Value); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		*o = append(*o, m)
	}
	return nil
}

// get returns the value of a member.
func (o inOrder[T]) get(name string) (value T, ok bool) {
	for _, m := range o {
		if m.Name == name {
			return m.Value, true
		}
	}
	return value, false
}

// schema has the parts of a JSON schema that the description of the API uses.
type schema struct {
	Ref         string `json:"$ref"`
	Type        any    // a string, or a list of strings
	Description string
	Required    []string
	Properties  inOrder[schema]
	Items       *schema
	Additional  json.RawMessage `json:"additionalProperties"` // a schema, or false
	OneOf       []schema
	AnyOf       []schema
	AllOf       []schema
	Enum        []any
	Default     any
	Format      string
	Pattern     string
	Minimum     *float64
	Maximum     *float64
	MinItems    *int
	MaxItems    *int
}

// Field is a schema as a page shows it: a field, or the whole of a body.
type Field struct {
	Name     string // "": the whole
	Type     string // in words, with the range of its values
	About    string
	Required bool
	Fields   []Field // of an object, of each element of a list, or the kinds that it may be of
}

// typeText are the words for a type, as in string or null.
func (s schema) typeText() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		var names []string
		for _, name := range t {
			names = append(names, fmt.Sprint(name))
		}
		return strings.Join(names, " or ")
	}
	return "any value"
}

// rangeText are the words for the values that s permits, each after a comma.
func (s schema) rangeText() (text string) {
	for _, part := range []struct {
		given  bool
		format string
		value  any
	}{
		{s.Format != "", "%s", s.Format}, {len(s.Enum) > 0, "one of %s", listText(s.Enum)},
		{s.Minimum != nil, "at least %v", deref(s.Minimum)}, {s.Maximum != nil, "at most %v", deref(s.Maximum)},
		{s.MinItems != nil, "at least %d elements", deref(s.MinItems)},
		{s.MaxItems != nil, "at most %d elements", deref(s.MaxItems)},
		{s.Pattern != "", "like %s", s.Pattern}, {s.Default != nil, "%v unless it is given", s.Default},
	} {
		if part.given {
			text += ", " + fmt.Sprintf(part.format, part.value)
		}
	}
	return text
}

func deref[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

func listText(values []any) string {
	var texts []string
	for _, v := range values {
		if v == nil {
			v = "null"
		}
		texts = append(texts, fmt.Sprint(v))
	}
	return strings.Join(texts, ", ")
}

// field is s as a page shows it, with its references resolved. Within are the enclosing schemas: a reference
// to one of them is named, and not shown again.
func (d *Document) field(name string, s schema, within ...string) Field {
	if ref, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		of, known := d.Components.Schemas.get(ref)
		if !known || slices.Contains(within, ref) {
			return Field{Name: name, Type: ref, About: s.Description}
		}
		v := d.field(name, of, append(slices.Clone(within), ref)...)
		v.Type = ref + ", " + v.Type
		return v
	}
	v := Field{Name: name, Type: s.typeText() + s.rangeText(), About: s.Description}
	switch {
	case len(s.OneOf)+len(s.AnyOf) > 0:
		v.Type = "one of these"
		for _, one := range append(s.OneOf, s.AnyOf...) {
			v.Fields = append(v.Fields, d.field("", one, within...))
		}
	case s.Items != nil:
		item := d.field("", *s.Items, within...)
		v.Type = "list" + s.rangeText() + ", each: " + item.Type
		v.Fields = item.Fields
	}
	for _, part := range s.AllOf {
		for _, f := range d.field("", part, within...).Fields {
			f.Required = f.Required || slices.Contains(s.Required, f.Name)
			v.Fields = append(v.Fields, f)
		}
	}
	for _, p := range s.Properties {
		f := d.field(p.Name, p.Value, within...)
		f.Required = slices.Contains(s.Required, p.Name)
		v.Fields = append(v.Fields, f)
	}
	var other schema
	if len(s.Additional) > 0 && json.Unmarshal(s.Additional, &other) == nil {
		v.Fields = append(v.Fields, d.field("any other name", other, within...))
	}
	return v
}
