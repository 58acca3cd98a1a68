package sqltext

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/ledger/event"
)

// quoted is text as a string of SQL.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// instant is t as the views have it.
func instant(t time.Time) string { return quoted(event.FormatTime(t)) }

// Counts counts jobs by queue and state; queue "" is all of them.
func Counts(queue string) string {
	where := ""
	if queue != "" {
		where = " WHERE queue = " + quoted(queue)
	}
	return "SELECT queue, state, count(*) FROM current" + where + " GROUP BY queue, state"
}

// CountsAt is Counts as of pos.
func CountsAt(queue string, pos int64) string {
	where := ""
	if queue != "" {
		where = " AND c.queue = " + quoted(queue)
	}
	return fmt.Sprintf("SELECT c.queue, h.to_state, count(*) FROM history h JOIN current c ON c.id = h.job "+
		"WHERE h.pos IN (SELECT max(pos) FROM history WHERE to_state IS NOT NULL AND pos <= %d GROUP BY job)%s "+
		"GROUP BY c.queue, h.to_state", pos, where)
}

// Window selects columns of the events of a window; end is what follows the condition.
func Window(columns string, after, until int64, end string) string {
	return fmt.Sprintf("SELECT %s FROM history WHERE pos > %d AND pos <= %d %s", columns, after, until, end)
}

// Failures counts the attempts that failed within a window; queue and worker "" are all of them.
func Failures(queue, worker string, after, until int64) string {
	where, of := "AND kind IN ('failed', 'reclaimed')", []string(nil)
	if queue != "" {
		of = append(of, "queue = "+quoted(queue))
	}
	if worker != "" {
		of = append(of, quoted(worker)+" IN (worker, boot)")
	}
	if of != nil {
		where += " AND (job, attempt) IN (SELECT job, attempt FROM attempts WHERE " + strings.Join(of, " AND ") +
			")"
	}
	return Window("kind, count(*), count(DISTINCT job)", after, until, where+" GROUP BY kind")
}

// tagOf is the value that a job's tag has, in SQLite or PostgreSQL. The views of both have tags as a text.
func tagOf(tag string, postgres bool) string {
	if postgres {
		return "tags::jsonb ->> " + quoted(tag)
	}
	return "tags ->> " + quoted(tag)
}

// Jobs lists jobs as query selects them, in SQLite or PostgreSQL; "" if SQL over one view cannot express
// that.
func Jobs(query url.Values, limit int, postgres bool) string {
	columns := map[string]string{"queue": "queue", "state": "state", "key": "key", "group": "grp",
		"error": "error_code"}
	var terms []string
	for name, values := range query {
		column, known := columns[name]
		var texts []string
		for _, v := range values {
			texts = append(texts, quoted(v))
			if tag, value, ok := strings.Cut(v, "="); name == "tag" && ok {
				terms = append(terms, tagOf(tag, postgres)+" = "+quoted(value))
			}
		}
		switch {
		case name == "limit" || name == "tag":
		case name == "find":
			found, ok := searched(query.Get(name), postgres)
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

// searched are the terms of a search as conditions on the view; ok is false if the view cannot express them.
func searched(text string, postgres bool) (conditions []string, ok bool) {
	terms, err := find.Terms(text)
	if err != nil {
		return nil, false
	}
	columns := map[string]string{"queue": "queue", "state": "state", "key": "key", "error": "error_code"}
	anyOf := make(map[string][]string)
	for _, t := range terms {
		tag, value, valued := strings.Cut(t.Value, "=")
		column, known := columns[t.Key]
		if t.Key == "tag" && valued {
			column, known, t.Value = tagOf(tag, postgres), true, value
		}
		switch {
		case known && t.Key == "tag" && !t.Not: // a job has several
			conditions = append(conditions, column+" = "+quoted(t.Value))
		case !known:
			return nil, false
		case t.Not:
			conditions = append(conditions, "coalesce("+column+", '') <> "+quoted(t.Value))
		default:
			anyOf[column] = append(anyOf[column], quoted(t.Value))
		}
	}
	for column, values := range anyOf {
		conditions = append(conditions, column+" IN ("+strings.Join(values, ", ")+")")
	}
	return conditions, true
}

// Events lists events up to pos as query selects them; "" if SQL over one view cannot express that.
func Events(query url.Values, pos int64, limit int) string {
	where := fmt.Sprintf(" WHERE pos <= %d", pos)
	for _, name := range []string{"job", "kind", "actor", "worker"} {
		var texts, not []string
		for _, v := range query[name] {
			if kind, left := strings.CutPrefix(v, "-"); left && name == "kind" {
				not = append(not, quoted(kind))
			} else {
				texts = append(texts, quoted(v))
			}
		}
		if len(texts) > 0 {
			where += " AND " + name + " IN (" + strings.Join(texts, ", ") + ")"
		}
		if len(not) > 0 {
			where += " AND " + name + " NOT IN (" + strings.Join(not, ", ") + ")"
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

// Held lists the claims that were live at a moment, by process; zero: now.
func Held(at time.Time) string {
	if at.IsZero() {
		return "SELECT worker, boot, host, pid, count(*) FROM attempts WHERE ended_at IS NULL " +
			"GROUP BY worker, boot, host, pid"
	}
	return fmt.Sprintf("SELECT worker, boot, host, pid, count(*) FROM attempts WHERE claimed_at <= %s "+
		"AND (ended_at IS NULL OR ended_at > %s) GROUP BY worker, boot, host, pid", instant(at), instant(at))
}

// Kinds lists the last events of some kinds.
func Kinds(kinds []event.Kind) string {
	var texts []string
	for _, k := range kinds {
		texts = append(texts, quoted(k.String()))
	}
	return "SELECT pos, at, kind, actor, data FROM history WHERE kind IN (" + strings.Join(texts, ", ") +
		") ORDER BY pos DESC LIMIT 100"
}

// Claims lists the claims of a worker that began up to a moment.
func Claims(worker string, until time.Time) string {
	return "SELECT job, attempt, claimed_at, ended_at, outcome FROM attempts WHERE worker = " + quoted(worker) +
		" AND claimed_at <= " + instant(until) + " ORDER BY claimed_at"
}
