package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/jobfilter"
	"jobledger/ledger/event"
)

// sqlText is text as a string of SQL.
func sqlText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// sqlTime is t as the views have it.
func sqlTime(t time.Time) string { return sqlText(t.UTC().Format("2006-01-02T15:04:05.000000Z")) }

// countsSQL counts jobs by queue and state, now or at the position of a page about the past.
func (f *frame) countsSQL(queue string) string {
	if f.At == "" {
		where := ""
		if queue != "" {
			where = " WHERE queue = " + sqlText(queue)
		}
		return "SELECT queue, state, count(*) FROM current" + where + " GROUP BY queue, state"
	}
	where := ""
	if queue != "" {
		where = " AND c.queue = " + sqlText(queue)
	}
	return fmt.Sprintf("SELECT c.queue, h.to_state, count(*) FROM history h JOIN current c ON c.id = h.job "+
		"WHERE h.pos IN (SELECT max(pos) FROM history WHERE to_state IS NOT NULL AND pos <= %d GROUP BY job)%s "+
		"GROUP BY c.queue, h.to_state", f.Pos, where)
}

// windowSQL selects the events of a window.
func windowSQL(what string, after, until int64, end string) string {
	return fmt.Sprintf("SELECT %s FROM history WHERE pos > %d AND pos <= %d %s", what, after, until, end)
}

// jobsSQL lists jobs as query selects them; "" where SQL over one view does not say that.
func jobsSQL(query url.Values, limit int) string {
	columns := map[string]string{"queue": "queue", "state": "state", "key": "key", "group": "grp",
		"error": "error_code"}
	var terms []string
	for name, values := range query {
		column, known := columns[name]
		var texts []string
		for _, v := range values {
			texts = append(texts, sqlText(v))
			if tag, value, ok := strings.Cut(v, "="); name == "tag" && ok {
				terms = append(terms, "tags ->> "+sqlText(tag)+" = "+sqlText(value))
			}
		}
		switch {
		case name == "limit" || name == "tag":
		case name == "find":
			found, ok := findSQL(query.Get(name))
			if !ok {
				return ""
			}
			terms = append(terms, found...)
		case !known || len(texts) == 0:
			return ""
		default:
			terms = append(terms, column+" IN ("+strings.Join(texts, ", ")+")")
		}
	}
	where := ""
	if len(terms) > 0 {
		slices.Sort(terms)
		where = " WHERE " + strings.Join(terms, " AND ")
	}
	return fmt.Sprintf("SELECT id, state, queue, failures, max_attempts, worker, key, error_code "+
		"FROM current%s ORDER BY id DESC LIMIT %d", where, limit)
}

// findSQL are the terms of a search as conditions on the view; ok is false where that does not say it.
func findSQL(text string) (conditions []string, ok bool) {
	terms, err := jobfilter.Terms(text)
	if err != nil {
		return nil, false
	}
	columns := map[string]string{"queue": "queue", "state": "state", "key": "key", "error": "error_code"}
	anyOf := make(map[string][]string)
	for _, t := range terms {
		tag, value, valued := strings.Cut(t.Value, "=")
		column, known := columns[t.Key]
		if t.Key == "tag" && valued {
			column, known, t.Value = "tags ->> "+sqlText(tag), true, value
		}
		switch {
		case known && t.Key == "tag" && !t.Not: // a job has several
			conditions = append(conditions, column+" = "+sqlText(t.Value))
		case !known:
			return nil, false
		case t.Not:
			conditions = append(conditions, "coalesce("+column+", '') <> "+sqlText(t.Value))
		default:
			anyOf[column] = append(anyOf[column], sqlText(t.Value))
		}
	}
	for column, values := range anyOf {
		conditions = append(conditions, column+" IN ("+strings.Join(values, ", ")+")")
	}
	return conditions, true
}

// eventsSQL lists events up to pos as query selects them; "" where SQL over one view does not say that.
func eventsSQL(query url.Values, pos int64, limit int) string {
	where := fmt.Sprintf(" WHERE pos <= %d", pos)
	for _, name := range []string{"job", "kind", "actor", "worker"} {
		var texts []string
		for _, v := range query[name] {
			texts = append(texts, sqlText(v))
		}
		if len(texts) > 0 {
			where += " AND " + name + " IN (" + strings.Join(texts, ", ") + ")"
		}
	}
	for name := range query {
		if !slices.Contains([]string{"job", "kind", "actor", "worker", "at", "last"}, name) {
			return ""
		}
	}
	return fmt.Sprintf("SELECT pos, at, kind, job, actor, data FROM history%s ORDER BY pos DESC LIMIT %d", where,
		limit)
}

// heldSQL lists the claims that were live at a moment, by process; zero: now.
func heldSQL(at time.Time) string {
	if at.IsZero() {
		return "SELECT worker, boot, host, pid, count(*) FROM attempts WHERE ended_at IS NULL " +
			"GROUP BY worker, boot, host, pid"
	}
	return fmt.Sprintf("SELECT worker, boot, host, pid, count(*) FROM attempts WHERE claimed_at <= %s "+
		"AND (ended_at IS NULL OR ended_at > %s) GROUP BY worker, boot, host, pid", sqlTime(at), sqlTime(at))
}

// kindsSQL lists the last events of some kinds.
func kindsSQL(kinds []event.Kind) string {
	var texts []string
	for _, k := range kinds {
		texts = append(texts, sqlText(k.String()))
	}
	return "SELECT pos, at, kind, actor, data FROM history WHERE kind IN (" + strings.Join(texts, ", ") +
		") ORDER BY pos DESC LIMIT 100"
}
