package jsonscan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"jobledger/ledger/jsonscan"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// FuzzText compares Text, of text and of bytes, with package encoding/json.
func FuzzText(f *testing.F) {
	for _, s := range []string{`""`, `"ada"`, `"12345678"`, `"1234567\n"`, `"12345678\""`,
		"\"1234567\x1f\"", "\"\x1f2345678\"", `"Grüße an Jürgen, schöne Feiertage"`, "\"123456789\xff\"",
		"\"\x7f\x80\"", `"\ud800"`, `"\\"`, `7`, `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if !json.Valid([]byte(raw)) || raw != strings.TrimSpace(raw) {
			quoted := len(raw) > 2 && raw[0] == '"' && raw[len(raw)-1] == '"'
			if strings.ContainsFunc(raw, func(c rune) bool { return c < ' ' }) && quoted {
				if text, err := jsonscan.Text(raw); err == nil {
					t.Errorf("%q is read as %q", raw, text)
				}
			}
			return
		}
		var want string
		isText := raw[0] == '"' && json.Unmarshal([]byte(raw), &want) == nil
		fromText, err := jsonscan.Text(raw)
		fromBytes, bytesErr := jsonscan.Text([]byte(raw))
		if (err == nil) != isText || (bytesErr == nil) != isText ||
			isText && (fromText != want || fromBytes != want) {
			t.Errorf("%q is read as %q, %v, of bytes as %q, %v", raw, fromText, err, fromBytes, bytesErr)
		}
	})
}

// FuzzAll compares the members that All and Split find with package encoding/json.
func FuzzAll(f *testing.F) {
	for _, s := range []string{`{}`, ` { "a" : 1 , "b" : [ {"c":"}"} ] } `, `{"a":"\\","b":"\\\"\\","c":null}`,
		`{"a":{"a":"]"},"a":-1.5e3}`, `{"a":"","b":true,"ü":"\u00fc"}`, `{"a":[[],{}],"b":""}`, `[1]`,
		`{"a":1}x`, `{"a"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		valid := json.Valid([]byte(text)) && strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
		type member struct{ key, raw string }
		var want, found, ofBytes []member
		if valid {
			d := json.NewDecoder(strings.NewReader(text))
			_, _ = d.Token()
			for d.More() {
				key, _ := d.Token()
				var raw json.RawMessage
				if err := d.Decode(&raw); err != nil {
					t.Fatal(err)
				}
				want = append(want, member{key.(string), string(raw)})
			}
		}
		for key, raw := range jsonscan.All(text) { // it ends, whatever text is
			found = append(found, member{key, raw})
		}
		for key, raw := range jsonscan.All([]byte(text)) {
			ofBytes = append(ofBytes, member{key, string(raw)})
		}
		if len(found) != len(ofBytes) {
			t.Fatalf("%q: %q, of bytes %q", text, found, ofBytes)
		}
		var m jsonscan.Members
		if err := m.Split(text); valid && (err != nil || len(found) != len(want)) {
			t.Fatalf("%q: %v, %q, want %q", text, err, found, want)
		}
		for i := range want {
			split, ok := m.Take(want[i].key)
			if found[i] != want[i] || ofBytes[i] != want[i] || !ok || split != want[i].raw {
				t.Errorf("%q: %q and %q, want %q", text, found[i], split, want[i])
			}
		}
	})
}
