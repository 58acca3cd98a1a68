//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/files"
	"jobledger/commands"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/audit"
)

// forged are the values for a field of a history; its values in other lines are tried too.
var forged = []string{`null`, `-1`, `0`, `1`, `1.5`, `9007199254740993`, `9223372036854775807`, `1e999`,
	`true`, `""`,
	`"\u001b[31mred"`, `"\u0000"`, `"\u202e"`, `"A B"`, `"x"`, `" x "`, `"é"`,
	`"2026-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`,
	`"` + strings.Repeat("x", 5000) + `"`, `[]`, `["x","x"]`, `{}`, `{"a":"b"}`}

// forgery is one field of one line, and its new value; an empty value removes the field.
type forgery struct {
	line         int
	inData       bool
	field, value string
}

type rawObject = map[string]json.RawMessage

// forge returns the line with the field changed; ok is false if nothing changes.
func (f forgery) forge(t *testing.T, line string) (changed string, ok bool) {
	t.Helper()
	var top, data rawObject
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(json.Unmarshal([]byte(line), &top))
	must(json.Unmarshal(top["data"], &data))
	object := top
	if f.inData {
		object = data
	}
	if string(object[f.field]) == f.value {
		return "", false
	}
	if f.value == "" {
		delete(object, f.field)
	} else {
		object[f.field] = json.RawMessage(f.value)
	}
	write := func(object rawObject) json.RawMessage { // package json does not accept 1e999, only its text
		var b strings.Builder
		for _, key := range slices.Sorted(maps.Keys(object)) {
			fmt.Fprintf(&b, `,%q:%s`, key, object[key])
		}
		return json.RawMessage("{" + strings.TrimPrefix(b.String(), ",") + "}")
	}
	if f.inData {
		top["data"] = write(data)
	}
	return string(write(top)), true
}

// forgeries returns all forgeries, in a fixed order.
func forgeries(t *testing.T, lines []string) (all []forgery) {
	t.Helper()
	seen := make(map[string][]string) // the values of each field
	each := func(do func(line int, inData bool, field, value string)) {
		for n, line := range lines {
			var top, data rawObject
			if err := errors.Join(json.Unmarshal([]byte(line), &top), json.Unmarshal(top["data"], &data)); err != nil {
				t.Fatal(err)
			}
			for _, object := range []rawObject{top, data} {
				for _, field := range slices.Sorted(maps.Keys(object)) {
					do(n, len(object) == len(data) && object["pos"] == nil, field, string(object[field]))
				}
			}
		}
	}
	each(func(_ int, _ bool, field, value string) {
		if field != "data" && !slices.Contains(seen[field], value) {
			seen[field] = append(seen[field], value)
		}
	})
	again := func(line int) bool { // an event that archiveBlock repeats
		const repeated = `"kind":"rebuilt"`
		return line > 0 && strings.Contains(lines[line], repeated) && strings.Contains(lines[line-1], repeated)
	}
	each(func(line int, inData bool, field, _ string) {
		if again(line) {
			return
		}
		for _, value := range slices.Concat([]string{""}, forged, seen[field]) {
			all = append(all, forgery{line, inData, field, value})
		}
	})
	return all
}

// completeHistory is a history with an event of every kind.
func completeHistory(t *testing.T) []string {
	t.Helper()
	store, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	store.Now = noon
	s := &commands.Service{Store: store}
	text := strings.Join(smallHistory(t), "\n") + "\n"
	content := io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))
	_, err = load.Import(t.Context(), s, "cli:ada@desk", "night", files.Lines(content), nil)
	if err == nil {
		err = s.Restored(t.Context(), "cli:ada@desk", event.Restored{From: "backup.db"})
	}
	var jobs []commands.Enqueued
	if err == nil {
		jobs, err = s.Enqueue(t.Context(), "cli:ada@desk",
			commands.Enqueue{Queue: "mail", Payload: []byte("secret")})
	}
	if err == nil {
		_, err = s.Apply(t.Context(), "cli:ada@desk", jobs[0].ID, commands.Cancel{})
	}
	if err == nil {
		_, err = s.Apply(t.Context(), "cli:ada@desk", jobs[0].ID, commands.Erase{Reason: "a wish"})
	}
	if err == nil {
		err = loseClaim(t, s)
	}
	now := noon()
	store.Now = func() time.Time { return now }
	arrange(t, s, func(d time.Duration) { now = now.Add(d) })
	archiveBlock(t, s)
	var out bytes.Buffer
	if err == nil {
		_, err = export.Lines(t.Context(), store, export.Window{Until: 1 << 40},
			export.LinesOptions{Bodies: true}, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, k := range event.Kinds() {
		has := func(line string) bool { return strings.Contains(line, `"kind":"`+k.String()+`"`) }
		if !slices.ContainsFunc(lines, has) {
			t.Errorf("the history has no event of the kind %s", k)
		}
	}
	return lines
}

// TestAttackImports sets each field of each line of a history to other values. The import refuses the line,
// or verify finds nothing wrong with the result.
func TestAttackImports(t *testing.T) {
	t.Parallel()
	lines := completeHistory(t)
	all := forgeries(t, lines)
	n := min(attacks(60, 100), len(all))
	if n < len(all) {
		dice := rand.New(rand.NewPCG(*flipSeed, 4))
		dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	var store *ledger.Store
	open := func() {
		var err error
		path := filepath.Join(t.TempDir(), "jobs.db")
		if store, err = ledger.Open(t.Context(), "sqlite:"+path+"?sync=normal"); err != nil {
			t.Fatal(err)
		}
	}
	open()
	defer func() { _ = store.Close() }()
	refused, accepted := 0, 0
	for _, f := range all[:n] {
		line, ok := f.forge(t, lines[f.line])
		if !ok {
			continue
		}
		changed := slices.Clone(lines)
		changed[f.line] = line
		text := strings.Join(changed, "\n") + "\n"
		store.Now = noon
		s := &commands.Service{Store: store}
		_, err := load.Import(t.Context(), s, "cli:ada@desk", "forged",
			files.Lines(io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))), nil)
		if err != nil {
			refused++
			if _, named := errors.AsType[*load.LineError](err); !named {
				t.Errorf("%+v: no line is named: %v\n%s", f, err, line)
			}
			continue
		}
		accepted++
		err = store.Read(t.Context(), func(tx *ledger.Tx) error {
			v, err := audit.Verify(t.Context(), tx, nil)
			if err == nil && len(v.Findings) > 0 {
				err = fmt.Errorf("%+v", v.Findings[0])
			}
			return err
		})
		if err != nil {
			t.Errorf("%+v was imported, and verify finds: %v\n%s", f, err, line)
		}
		_ = store.Close()
		open()
	}
	t.Logf("%d refused, %d accepted, of %d", refused, accepted, len(all))
	if refused < accepted || accepted == 0 && n > 1000 { // one in 40 is accepted
		t.Errorf("%d refused, %d accepted: this is not how it falls out", refused, accepted)
	}
}
