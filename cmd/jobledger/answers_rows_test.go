package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/testdata/oracletest"
)

// rowsIn reads objects of JSON, one after the other.
func rowsIn(t *testing.T, text string) (rows []oracletest.Row) {
	t.Helper()
	lines := json.NewDecoder(strings.NewReader(text))
	for {
		var r oracletest.Row
		err := lines.Decode(&r)
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatalf("%v: %.300s", err, text)
		}
		rows = append(rows, r)
	}
}

// plainRows is rows as JSON has them.
func plainRows(t *testing.T, rows any) (plain []oracletest.Row) {
	t.Helper()
	text, err := json.Marshal(rows)
	check(t, err)
	check(t, json.Unmarshal(text, &plain))
	return plain
}

// difference says where got is not what is wanted; "": nowhere. What got has besides the names of want is not
// compared.
func difference(got, want []oracletest.Row) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("%d rows, want %d: row %d is missing: %s", len(got), len(want), i, shownRow(want[i]))
		case i >= len(want):
			return fmt.Sprintf("%d rows, want %d: row %d is too many: %s", len(got), len(want), i, shownRow(got[i]))
		}
		g, w := inOneForm(map[string]any(got[i]), map[string]any(want[i])), inOneForm(map[string]any(want[i]), nil)
		if reflect.DeepEqual(g, w) {
			continue
		}
		for name, value := range w.(map[string]any) {
			if has := g.(map[string]any)[name]; !reflect.DeepEqual(has, value) {
				return fmt.Sprintf("row %d of %d (want %d): %s is %s, want %s, in %s", i, len(got), len(want), name,
					shownRow(has), shownRow(value), shownRow(got[i]))
			}
		}
	}
	return ""
}

func shownRow(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.700s", text)
}

var timePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT`)

// inOneForm is value with times and numbers in one form, and of an object only the names that shape has; nil:
// all.
func inOneForm(value, shape any) any {
	switch v := value.(type) {
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil && timePattern.MatchString(v) {
			return at.UTC().Format(time.RFC3339Nano)
		}
	case float64:
		return math.Round(v*1e6) / 1e6
	case map[string]any:
		names, shaped := shape.(map[string]any)
		if !shaped {
			names = v
		}
		out := make(map[string]any)
		for name, of := range names {
			inner := of
			if !shaped {
				inner = nil
			}
			out[name] = inOneForm(v[name], inner)
		}
		return out
	case []any:
		shapes, _ := shape.([]any)
		out := make([]any, len(v))
		for i, one := range v {
			var inner any
			if i < len(shapes) {
				inner = shapes[i]
			}
			out[i] = inOneForm(one, inner)
		}
		return out
	}
	return value
}
