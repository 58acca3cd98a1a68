package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger/event"
)

// droppedFirst says which columns a narrow terminal drops, by the names of their fields: the highest first.
// Those that are left fit into 80 columns.
var droppedFirst = map[string]int{"boot": 6, "next_claimed_at": 6, "attempt": 5, "reason": 4,
	"next_outcome": 3,
	"waited":       2, "queue": 1, "host": 5, "claimed_at": 6, "state": 6, "first": 6, "last": 5}

// Table returns rows of r for people, with times in zone.
func Table(r Report, rows []Row, zone *time.Location) *cli.Table {
	t := &cli.Table{}
	for _, f := range r.Empty.Fields() {
		column := cli.Column{Title: strings.ToUpper(strings.ReplaceAll(f.Name, "_", " ")),
			Drop: droppedFirst[f.Name]}
		switch f.Value.(type) {
		case int64, time.Duration:
			column.Right = true
		case event.State:
			column.State = true
		case string, []string:
			if f.Name != "job" {
				column.Least = 8
			}
		}
		t.Columns = append(t.Columns, column)
	}
	for _, row := range rows {
		var cells []string
		for _, f := range row.Fields() {
			cells = append(cells, cell(f, zone))
		}
		t.Add(cells...)
	}
	return t
}

// cell is a value as the table shows it.
func cell(f Field, zone *time.Location) string {
	switch v := f.Value.(type) {
	case time.Time:
		switch {
		case v.IsZero():
			return "–"
		case f.Name == "minute":
			return v.In(zone).Format("2006-01-02 15:04:05-07:00")
		}
		return render.Millis(v.In(zone))
	case time.Duration:
		return fmt.Sprintf("%.1fs", v.Seconds())
	}
	if text := plain(f.Value); text != "" {
		return text
	}
	return "–"
}

// WriteCSV writes rows of r as CSV, with a header. What is missing is empty; a cell that a spreadsheet would
// take for a formula is made harmless, see [export.Cell].
func WriteCSV(w io.Writer, r Report, rows []Row) error {
	out := csv.NewWriter(w)
	var header []string
	for _, f := range r.Empty.Fields() {
		header = append(header, f.Name)
	}
	if err := out.Write(header); err != nil {
		return err
	}
	for _, row := range rows {
		var cells []string
		for _, f := range row.Fields() {
			cells = append(cells, export.Cell(plain(f.Value)))
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// plain is a value as text; empty where it is missing.
func plain(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return render.JSONTime(v)
	case time.Duration:
		return fmt.Sprintf("%.6f", v.Seconds())
	case event.State:
		return v.String()
	case []string:
		return strings.Join(v, " ")
	}
	return fmt.Sprint(value)
}

// RowJSON is row as JSON: an object with its fields in order. What is missing is null, durations are seconds.
func RowJSON(row Row) json.Marshaler { return rowJSON(row.Fields()) }

type rowJSON []Field

// MarshalJSON implements [json.Marshaler].
func (fields rowJSON) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	for i, f := range fields {
		value := f.Value
		switch v := value.(type) {
		case time.Time:
			value = render.TimeOrNull(v)
		case time.Duration:
			value = v.Seconds()
		case event.State:
			value = render.TextOrNull(v.String())
		case string:
			value = render.TextOrNull(v)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		fmt.Fprintf(&b, "%q:%s", f.Name, text)
	}
	return []byte(b.String() + "}"), nil
}
