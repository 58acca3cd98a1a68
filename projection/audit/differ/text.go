package differ

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"jobledger/ledger/event"
)

// Contradiction describes a column that differs.
func Contradiction(column string, stored, folded any) string {
	return fmt.Sprintf("the table says %s, the events say %s", shown(column, stored), shown(column, folded))
}

// shown formats the value of a column for people.
func shown(column string, v any) string {
	n, isNumber := v.(int64)
	switch {
	case v == nil:
		return "null"
	case isNumber && column == "state":
		return event.State(n).String()
	case isNumber && (strings.HasSuffix(column, "_at") || column == "end_by" || column == "since"):
		return event.FormatTime(event.FromMicros(n))
	case isNumber:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.200q", fmt.Sprint(v))
}

func sortedKeys[V any](m map[int64]V) []int64 { return slices.Sorted(maps.Keys(m)) }
