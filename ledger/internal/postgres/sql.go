package postgres

import (
	"regexp"
	"strconv"
	"strings"
)

// Statements are written once, in words that SQLite and PostgreSQL share. The few differences are the same
// everywhere: how a parameter is written, how JSON is taken apart, and the hints for SQLite's planner.

var sqliteHints = regexp.MustCompile(` INDEXED BY \w+`)

var crossJoinOn = regexp.MustCompile(`CROSS JOIN (\w+ \w+ ON )`) // fixes the order of a join in SQLite

var jsonEach = regexp.MustCompile(`json_each\(([\w.]+), '\$\.(\w+)'\)`)

var groupConcat = regexp.MustCompile(`(?s)group_concat\((CASE .* END)\)`)

// translate returns a statement in PostgreSQL's words: ? becomes $1, $2…, and ?1 becomes $1.
func translate(query string) string {
	query = sqliteHints.ReplaceAllString(query, "")
	query = crossJoinOn.ReplaceAllString(query, "JOIN $1")
	query = jsonEach.ReplaceAllString(query, "json_each_text($1 -> '$2')")
	query = groupConcat.ReplaceAllString(query, "string_agg(($1)::text, ',')")
	var out strings.Builder
	count, quoted := 0, false
	for i := 0; i < len(query); i++ {
		switch b := query[i]; {
		case b == '\'':
			quoted = !quoted
			out.WriteByte(b)
		case b != '?' || quoted:
			out.WriteByte(b)
		default:
			out.WriteByte('$')
			if i+1 == len(query) || query[i+1] < '0' || query[i+1] > '9' {
				count++
				out.WriteString(strconv.Itoa(count))
			}
		}
	}
	return out.String()
}
