package argv_test

import (
	"reflect"
	"strings"
	"testing"

	"jobledger/commands/argv"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// A command comes back as it was, whatever bytes it has.
func TestFormsComeBack(t *testing.T) {
	for _, f := range []argv.Form{
		{Argv: []string{"true"}, Dir: "/", Env: map[string]string{}},
		{Argv: []string{"convert", "a b.jpg", "", "\xff\xfe.jpg", "é <&> \u2028", "new\nline"}, Dir: "/home/\xff",
			Env: map[string]string{"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "X": "\xff\n"}, Umask: "0027",
			EnvFile: "/home/ada/.secrets", Stdin: []byte("one\ntwo\x00\xff")},
	} {
		payload, err := f.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := argv.Decode(payload)
		if err != nil {
			t.Fatal(err)
		}
		if f.Stdin == nil {
			back.Stdin = nil
		}
		if !reflect.DeepEqual(back, f) {
			t.Errorf("%q became %q", f, back)
		}
		if strings.Contains(string(payload), `\u003c`) {
			t.Errorf("%s is escaped for HTML", payload)
		}
	}
}

// What no worker could run is refused with the reason.
func TestFormsThatAreNone(t *testing.T) {
	for _, c := range []struct{ payload, want string }{
		{``, "first line of JSON is missing"},
		{`{"argv":["true"],"dir":"/","env":{}}`, "first line of JSON is missing"},
		{"make all\n", "invalid character"},
		{`{"argv":[],"dir":"/","env":{}}` + "\n", "a command is missing"},
		{`{"argv":[""],"dir":"/","env":{}}` + "\n", "a command is missing"},
		{`{"argv":["a\u0000"],"dir":"/","env":{}}` + "\n", "NUL"},
		{`{"argv":["a"],"dir":"tmp","env":{}}` + "\n", "not a path from the root"},
		{`{"argv":["a"],"dir":"/","env":{},"env_file":"x"}` + "\n", "not a path from the root"},
		{`{"argv":["a"],"dir":"/","env":{"A=B":""}}` + "\n", "not the name of a variable"},
		{`{"argv":["a"],"dir":"/","env":{"JOBLEDGER_DB":""}}` + "\n", "cannot be recorded"},
		{`{"argv":["a"],"dir":"/","env":{"NOTIFY_SOCKET":""}}` + "\n", "cannot be recorded"},
		{`{"argv":["a"],"dir":"/","env":{},"umask":"0888"}` + "\n", "in octal"},
		{`{"argv":["a"],"dir":"/","env":{},"user":"root"}` + "\n", "unknown field"},
		{`{"argv":["a"],"dir":"/","env":{},"argv":["b"]}` + "\n", `"argv" is given twice`},
		{`{"argv":["a"],"dir":"/","env":{},"\u0061rgv":["b"]}` + "\n", `"argv" is given twice`},
		{`{"Argv":["a"],"dir":"/","env":{}}` + "\n", `unknown field "Argv"`},
		{`{"argv":["a"],"dir":"/","env":{"A":"1","B":"2","A":"3"}}` + "\n", `"A" is given twice`},
		{`{"argv":[{"base64":"","base64":"YQ=="}],"dir":"/","env":{}}` + "\n", `"base64" is given twice`},
		{`{"argv":["a"],"dir":"/","env":{}} {}` + "\n", "more than one object"},
		{`{"argv":[null],"dir":"/","env":{}}` + "\n", "null"},
		{`{"argv":[{"base64":"*"}],"dir":"/","env":{}}` + "\n", "illegal base64"},
		{`{"argv":[{}],"dir":"/","env":{}}` + "\n", "without"},
	} {
		if err := argv.Check([]byte(c.payload)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", c.payload, err, c.want)
		}
	}
}

// What is accepted is written again as the same command.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"argv":["a",{"base64":"/w=="}],"dir":"/","env":{"A":"b"},"umask":"022"}` + "\ninput"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		form, err := argv.Decode(payload)
		if err != nil {
			return
		}
		again, err := form.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := argv.Decode(again)
		if err != nil || !reflect.DeepEqual(back, form) {
			t.Errorf("%q became %q, %v", form, back, err)
		}
	})
}
