package print

import (
	"fmt"

	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/audit"
)

// Findings is a table of what is wrong with a ledger.
func Findings(found []audit.Finding) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "CODE"}, {Title: "POS", Right: true}, {Title: "JOB"},
		{Title: "FIELD"}, {Title: "FINDING"}}}
	for _, f := range found {
		pos := ""
		if f.Pos > 0 {
			pos = fmt.Sprint(f.Pos)
		}
		t.Add(f.Code, pos, string(f.Job), f.Field, f.Detail)
	}
	return t
}

// Finding says in a line what is wrong, and first of all where.
func Finding(f audit.Finding) string {
	where := f.Code
	if f.Pos > 0 {
		where += fmt.Sprintf(" event %d", f.Pos)
	}
	if f.Job != "" {
		where += " job " + string(f.Job)
	}
	if f.Field != "" {
		where += " field " + f.Field
	}
	return where + ": " + f.Detail
}

// LogCounts says how many files there were of each sort, without the zeros.
func LogCounts(n logs.Counts) string {
	text := words.Count(n.Checked, "file") + " checked"
	for _, part := range []struct {
		n    int64
		what string
	}{{n.Cut, "of them cut as the worker kept it"},
		{n.SizeOnly, "cut by an older version and checked by size only"},
		{n.Missing, "missing"}, {n.Erased, "of erased jobs still there"}, {n.Unreadable, "that cannot be read"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return fmt.Sprintf("logs: %s, %d differing", text, n.Differing)
}
