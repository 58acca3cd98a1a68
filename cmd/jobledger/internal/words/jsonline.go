package words

import (
	"bytes"
	"encoding/json"
)

// JSONLine returns v as one line of JSON: characters that could harm a terminal are written as \u sequences.
func JSONLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	line := b.Bytes()
	if !IsASCII(line) {
		line = EscapeJSON(line)
	}
	return line, nil
}
