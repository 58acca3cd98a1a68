// Package argv is the form of a payload that is a command: a job of event.FormArgv carries it. It is one line
// of JSON with the arguments, the folder and the environment, and after that line the bytes of the command's
// standard input. It is pure.
//
// Held by FuzzDecode, TestFormsComeBack and TestFormsThatAreNone. This package is not part of the Go API, and
// may change in any release.
package argv

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"jobledger/ledger/jsonscan"
)

// Form is a command with its environment, folder and umask.
type Form struct {
	Argv []string          // the program, a path or a name that is searched in PATH, and its arguments
	Dir  string            // the folder in which it runs, from the root
	Env  map[string]string // variables that were recorded with it
	// the umask of the command, in octal as umask prints it; "": that of the worker
	Umask   string
	EnvFile string // a file with more variables, which the worker reads at each start; "": none
	Stdin   []byte // its standard input
}

// header is the JSON form of a Form in its line.
type header struct {
	Argv    []text    `json:"argv"`
	Dir     text      `json:"dir"`
	Env     variables `json:"env"`
	Umask   string    `json:"umask,omitempty"`
	EnvFile text      `json:"env_file,omitempty"`
}

// variables have each name once: programs differ in which of two they take.
type variables map[string]text

// UnmarshalJSON reads what package json writes.
func (v *variables) UnmarshalJSON(data []byte) error {
	if err := once(data, false); err != nil {
		return err
	}
	return json.Unmarshal(data, (*map[string]text)(v))
}

// text is a string of any bytes: {"base64":"…"} where they are not UTF-8, as names of files may be.
type text string

type encoded struct {
	Base64 *string `json:"base64"`
}

// MarshalJSON writes t.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return plain(string(t))
	}
	return json.Marshal(encoded{new(base64.StdEncoding.EncodeToString([]byte(t)))})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var e encoded
		if err := strict(data, &e); err != nil {
			return err
		}
		if e.Base64 == nil {
			return errors.New(`an object without "base64"`)
		}
		decoded, err := base64.StdEncoding.DecodeString(*e.Base64)
		*t = text(decoded)
		return err
	}
	var s string
	if bytes.Equal(data, []byte("null")) {
		return errors.New("null in place of a text")
	}
	err := json.Unmarshal(data, &s)
	*t = text(s)
	return err
}

// plain writes v without escaping what HTML does.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// strict reads all of data into v, which must have each of its fields: what a later program adds may change
// what the command means. Each is there once, in small letters: programs differ in what else they take.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one object")
	}
	return once(data, true)
}

// once returns an error unless each name of the object in data is there once. The data is valid JSON. lower
// says that names have no capitals, which encoding/json takes for small letters.
func once(data []byte, lower bool) error {
	seen := make(map[string]bool)
	for name := range jsonscan.All(data) {
		switch {
		case seen[name]:
			return fmt.Errorf("%.40q is given twice", name)
		case lower && name != strings.ToLower(name):
			return fmt.Errorf("unknown field %.40q", name)
		}
		seen[name] = true
	}
	return nil
}

// Encode returns f as a payload; an error if it is not one that Decode accepts.
func (f Form) Encode() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	h := header{Dir: text(f.Dir), Env: make(variables, len(f.Env)), Umask: f.Umask,
		EnvFile: text(f.EnvFile)}
	for _, arg := range f.Argv {
		h.Argv = append(h.Argv, text(arg))
	}
	for name, value := range f.Env {
		h.Env[name] = text(value)
	}
	line, err := plain(h)
	return append(append(line, '\n'), f.Stdin...), err
}

// Decode reads a payload. It refuses what Encode never writes, and fields that it does not know.
func Decode(payload []byte) (f Form, err error) {
	line, stdin, ok := bytes.Cut(payload, []byte("\n"))
	if !ok {
		return f, errors.New("a first line of JSON is missing")
	}
	if !utf8.Valid(line) {
		return f, errors.New("its first line is not UTF-8")
	}
	var h header
	if err := strict(line, &h); err != nil {
		return f, fmt.Errorf("its first line: %w", err)
	}
	f = Form{Dir: string(h.Dir), Env: make(map[string]string, len(h.Env)), Umask: h.Umask,
		EnvFile: string(h.EnvFile), Stdin: stdin}
	for _, arg := range h.Argv {
		f.Argv = append(f.Argv, string(arg))
	}
	for name, value := range h.Env {
		f.Env[name] = string(value)
	}
	return f, f.check()
}

const shell = "/bin/sh"

// Shell returns the arguments of a command that is text for /bin/sh, which gets args as $1, $2 and so on.
func Shell(text string, args ...string) []string {
	return append([]string{shell, "-c", text, "sh"}, args...)
}

// ShellText returns the text of a command for /bin/sh, as [Shell] makes it; false: it is another command.
func ShellText(command []string) (text string, ok bool) {
	if len(command) > 2 && command[0] == shell && command[1] == "-c" {
		return command[2], true
	}
	return "", false
}

// Check returns what is wrong with a payload; nil if Decode accepts it.
func Check(payload []byte) error {
	_, err := Decode(payload)
	return err
}

// check returns what no system could run.
func (f Form) check() error {
	if len(f.Argv) == 0 || f.Argv[0] == "" {
		return errors.New("a command is missing")
	}
	for _, arg := range f.Argv {
		if strings.Contains(arg, "\x00") {
			return fmt.Errorf("the argument %.40q has a NUL", arg)
		}
	}
	if !strings.HasPrefix(f.Dir, "/") || strings.Contains(f.Dir, "\x00") {
		return fmt.Errorf("the folder %.80q is not a path from the root", f.Dir)
	}
	if f.EnvFile != "" && (!strings.HasPrefix(f.EnvFile, "/") || strings.Contains(f.EnvFile, "\x00")) {
		return fmt.Errorf("the file %.80q is not a path from the root", f.EnvFile)
	}
	if _, err := f.Mask(); err != nil {
		return err
	}
	for name, value := range f.Env {
		if err := CheckName(name); err != nil {
			return err
		}
		if strings.Contains(value, "\x00") {
			return fmt.Errorf("the value of the variable %s has a NUL", name)
		}
	}
	return nil
}

// Mask returns Umask as a number; -1 if there is none.
func (f Form) Mask() (int, error) {
	if f.Umask == "" {
		return -1, nil
	}
	mask, err := strconv.ParseUint(f.Umask, 8, 16)
	if err != nil || mask > 0o777 {
		return -1, fmt.Errorf("umask %.20q is not 000 to 777 in octal", f.Umask)
	}
	return int(mask), nil
}

// CheckName returns an error unless a command may carry a variable of this name: those that describe a job or
// a service are its worker's.
func CheckName(name string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00") || !utf8.ValidString(name):
		return fmt.Errorf("%.40q is not the name of a variable", name)
	case strings.HasPrefix(name, "JOBLEDGER_") || name == "NOTIFY_SOCKET":
		return fmt.Errorf("the variable %.60s cannot be recorded", name)
	}
	return nil
}
