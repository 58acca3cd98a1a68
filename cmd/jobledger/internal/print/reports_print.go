package print

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
)

// droppedFirst says which columns a narrow terminal drops, by the names of their fields: the highest first.
// Those that are left fit into 80 columns.
var droppedFirst = map[string]int{"boot": 6, "next_claimed_at": 6, "attempt": 5, "reason": 4,
	"next_outcome": 3,
	"waited":       2, "queue": 1, "host": 5, "claimed_at": 6, "state": 6, "first": 6, "last": 5,
	"after_max_runtime": 7,
	"cancelled":         6, "failed": 6, "succeeded": 6, "by": 5, "pid": 5, "pos": 6,
	"about": 2, "of": 6, "signal": 6, "error_code": 4, "exit_code": 3, "last_failed": 2}

// Table lays out rows of r for people, with times in zone.
func (r Report) Table(rows [][]any, zone *time.Location) *words.Table {
	t := &words.Table{}
	for i, name := range r.Columns {
		column := words.Column{Title: strings.ToUpper(strings.ReplaceAll(name, "_", " ")),
			Drop: droppedFirst[name]}
		switch rows[0][i].(type) {
		case nil, int64, time.Duration:
			column.Right = true
		case event.State:
			column.State = true
		case string, []string:
			if name != "job" {
				column.Least = 8
			}
		}
		t.Columns = append(t.Columns, column)
	}
	for _, row := range rows {
		var cells []string
		for i, value := range row {
			cells = append(cells, cell(r.Columns[i], value, zone))
		}
		t.Add(cells...)
	}
	return t
}

// cell is a value as the table shows it.
func cell(name string, value any, zone *time.Location) string {
	text := plain(value)
	switch v := value.(type) {
	case time.Time:
		if text != "" && name == "minute" {
			return v.In(zone).Format("2006-01-02 15:04:05-07:00")
		} else if text != "" {
			return words.Millis(v.In(zone))
		}
	case int64:
		if name == "max_rss" {
			return words.Memory(v)
		}
	case time.Duration:
		if text != "" && slices.Contains([]string{"cpu", "cpu_user", "cpu_system", "elapsed"}, name) {
			return words.Gap(v)
		} else if text != "" {
			return fmt.Sprintf("%.1fs", v.Seconds())
		}
	}
	return cmp.Or(text, "–")
}

// WriteCSV writes rows as CSV, with a header. What is missing is empty; a cell that a spreadsheet would take
// for a formula is made harmless, see [words.Cell].
func (r Report) WriteCSV(w io.Writer, rows [][]any) error {
	out := csv.NewWriter(w)
	err := out.Write(r.Columns)
	for _, row := range rows {
		err = cmp.Or(err, out.Write(words.Of(row, func(value any) string { return words.Cell(plain(value)) })))
	}
	out.Flush()
	return cmp.Or(err, out.Error())
}

// plain is a value as text; empty if it is missing.
func plain(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return words.JSONTime(v)
	case time.Duration:
		if v < 0 {
			return ""
		}
		return fmt.Sprintf("%.6f", v.Seconds())
	case []string:
		return strings.Join(v, " ")
	}
	return fmt.Sprint(value)
}

// RowJSON is a row as JSON: an object with the columns in order. What is missing is null, durations are
// seconds.
func (r Report) RowJSON(row []any) json.Marshaler { return rowJSON{r.Columns, row} }

type rowJSON struct {
	names  []string
	values []any
}

// MarshalJSON implements [json.Marshaler].
func (r rowJSON) MarshalJSON() ([]byte, error) {
	b := []byte("{")
	for i, value := range r.values {
		switch v := value.(type) {
		case time.Duration:
			if value = v.Seconds(); v < 0 {
				value = nil
			}
		case time.Time, event.State, string:
			value = words.TextOrNull(plain(v))
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(strconv.AppendQuote(b, r.names[i]), ':'), text...)
	}
	return append(b, '}'), nil
}
