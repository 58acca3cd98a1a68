package joblines

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"jobledger/cmd/jobledger/internal/fault"
)

// notObject says what is wrong with a line that is not one JSON object; nil: nothing is.
func notObject(line []byte) error {
	start := bytes.TrimLeft(line, " \t\r\n")
	isObject := bytes.HasPrefix(start, []byte("{"))
	if isObject && json.Valid(line) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(line))
	switch err := d.Decode(new(json.RawMessage)); {
	case !isObject:
		return fault.Usagef("not a JSON object")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fault.Usagef("not a JSON object: it breaks off")
	case err != nil:
		return fault.Usagef("not a JSON object: %w", err)
	}
	return fault.Usagef("text after the JSON object; a line holds one")
}
