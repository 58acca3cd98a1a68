package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// MaxDepth is how deep JSON may be nested.
const MaxDepth = 32

// Read reads one JSON object into v. An unknown or repeated name, half of a character, anything after the
// object, and nesting deeper than MaxDepth are an InvalidError.
func Read(text []byte, v any) error {
	bad := func(err error) error {
		invalid := &commands.InvalidError{Field: body, Got: err.Error(), Allowed: "one JSON object as documented"}
		if member := memberOf(err); member != "" {
			return InField(member, invalid)
		}
		return invalid
	}
	if err := check(text, true); err != nil {
		return bad(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bad(err)
	}
	return nil
}

// body is the field of an InvalidError about the body as a whole.
const body = "body"

// memberOf is the name of the member that err, of encoding/json or check, is about; "" where it does not say.
func memberOf(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return wrong.Field
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if name, err := strconv.Unquote(quoted); err == nil {
			return name
		}
	}
	in, _ := InputOf(err)
	return in.Field
}

// Check returns an error unless body is one JSON object without repeated names and not nested deeper than
// MaxDepth.
func Check(body []byte) error { return check(body, false) }

// check is Check; lower says that names have no capitals, which encoding/json takes for small letters.
func check(body []byte, lower bool) error {
	if err := event.CheckStrings(body); err != nil {
		return err
	}
	if plain(body, lower) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var open []map[string]bool // of the nested values; nil: an array
	name := false              // the next string is a name
	for {
		token, err := d.Token()
		if err != nil {
			return brokenOff(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if len(open) == MaxDepth {
				return fmt.Errorf("nested deeper than %d", MaxDepth)
			}
			if token == json.Delim('{') {
				open, name = append(open, make(map[string]bool)), true
				continue
			}
			if len(open) == 0 {
				return errors.New("no object")
			}
			open, name = append(open, nil), false
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if len(open) == 0 {
				return errors.New("no object")
			}
			if names := open[len(open)-1]; name {
				text, _ := token.(string)
				if lower && strings.ToLower(text) != text {
					return InField(text, fmt.Errorf("unknown field %.40q", text))
				}
				if names[text] {
					return InField(text, fmt.Errorf("%.40q is given twice", text))
				}
				names[text], name = true, false
				continue
			}
		}
		if len(open) == 0 {
			break
		}
		name = open[len(open)-1] != nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the object")
	}
	return nil
}

func brokenOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it breaks off")
	}
	return err
}
