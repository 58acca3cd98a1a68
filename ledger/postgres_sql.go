package ledger

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Statements are written once, in words that SQLite and PostgreSQL both have. What is left to change is the same
// everywhere: how a parameter is written, how JSON is taken apart, and the hints that only SQLite's planner needs.

var sqliteHints = regexp.MustCompile(` INDEXED BY \w+`)

var crossJoinOn = regexp.MustCompile(`CROSS JOIN (\w+ \w+ ON )`) // fixes the order of a join in SQLite

var jsonEach = regexp.MustCompile(`json_each\(([\w.]+), '\$\.(\w+)'\)`)

var groupConcat = regexp.MustCompile(`(?s)group_concat\((CASE .* END)\)`)

// inPostgres is a statement in PostgreSQL's words: ? becomes $1, $2…, and ?1 becomes $1.
func inPostgres(query string) string {
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

// postgresTypes are the types of the columns, as of parameters that hold many.
var postgresTypes = map[Type]string{Integer: "int8", Text: "text", Bytes: "bytea", JSON: "text"}

// form is how a List's statement is written.
type form struct {
	many   bool
	atOnce bool   // of an update: who sends it looks how many rows it changed; else another number is an error
	same   uint64 // of many rows: a bit for each column in which all have one value
}

// fewRows may have the same values by chance: to leave that out of their statements would make too many of these.
const fewRows = 16

// inPostgres returns the statement for so many rows, and its arguments.
func (l *List) inPostgres(rows int, args []any, atOnce bool) (text string, bound []any) {
	f := form{many: rows > 1, atOnce: atOnce}
	bound = args[:l.width]
	if f.many {
		if rows >= fewRows {
			f.same = l.same(rows, args)
		}
		bound = l.byColumn(rows, args, f.same)
	}
	if stored, ok := l.postgres.Load(f); ok {
		return stored.(string), bound
	}
	text = l.postgresText(f)
	l.postgres.Store(f, text)
	return text, bound
}

// same finds the columns in which all rows have one value. By the first one, rows are told apart.
func (l *List) same(rows int, args []any) (columns uint64) {
	for i := 1; i < l.width; i++ {
		if l.types[i] == Bytes {
			continue
		}
		r := 1
		for r < rows && args[r*l.width+i] == args[i] {
			r++
		}
		if r == rows {
			columns |= 1 << i
		}
	}
	return columns
}

func (l *List) postgresText(f form) string {
	var arrays, names, values []string
	for i, t := range l.types {
		param, name := fmt.Sprintf("$%d", i+1), fmt.Sprintf("c%d", i+1)
		value := param
		switch {
		case f.many && f.same&(1<<i) == 0:
			arrays, names, value = append(arrays, param+"::"+postgresTypes[t]+"[]"), append(names, name), "v."+name
		case f.many:
			value += "::" + postgresTypes[t]
		}
		if t == JSON {
			value += "::json"
		}
		values = append(values, value)
	}
	from := fmt.Sprintf("unnest(%s) AS v(%s)", strings.Join(arrays, ", "), strings.Join(names, ", "))
	if !l.exact {
		text := fmt.Sprintf("INSERT INTO %s (%s)", l.table, strings.Join(l.columns, ", "))
		if f.many {
			return text + fmt.Sprintf(" SELECT %s FROM %s", strings.Join(values, ", "), from) + l.conflict
		}
		return text + fmt.Sprintf(" VALUES (%s)", strings.Join(values, ", ")) + l.conflict
	}
	var set []string
	for i, name := range l.columns[2:] {
		set = append(set, name+" = "+values[i+2])
	}
	update := fmt.Sprintf("UPDATE %s SET %s", l.table, strings.Join(set, ", "))
	if f.many {
		update += " FROM " + from
	}
	update += fmt.Sprintf(" WHERE %[1]s.%[2]s = %[3]s AND %[1]s.%[4]s = %[5]s", l.table, l.columns[0], values[0], l.columns[1], values[1])
	switch {
	case f.atOnce:
		return update
	case f.many:
		return fmt.Sprintf("WITH done AS (%s RETURNING 1) SELECT 1 / (count(*) = cardinality($1::%s[]))::int FROM done", update, postgresTypes[l.types[0]])
	}
	return "WITH done AS (" + update + " RETURNING 1) SELECT 1 / (count(*) = 1)::int FROM done"
}

// byColumn makes of rows an array for each column, but for those where they are the same.
func (l *List) byColumn(rows int, args []any, same uint64) []any {
	bound := make([]any, l.width)
	for i, t := range l.types {
		if same&(1<<i) != 0 {
			bound[i] = args[i]
			continue
		}
		switch t {
		case Integer:
			bound[i] = column[int64](rows, args[i:], l.width)
		case Text, JSON:
			bound[i] = column[string](rows, args[i:], l.width)
		case Bytes:
			values := make([][]byte, rows)
			for r := range values {
				values[r], _ = args[i+r*l.width].([]byte)
			}
			bound[i] = values
		}
	}
	return bound
}

// column takes every width'th of args: a slice of values, or of pointers to them where one is null.
func column[T int64 | string](rows int, args []any, width int) any {
	values := make([]T, rows)
	null := false
	for r := range values {
		v, ok := args[r*width].(T)
		if n, small := args[r*width].(int); small { // which would become a null
			v, ok = any(int64(n)).(T)
		}
		values[r], null = v, null || !ok
	}
	if !null {
		return values
	}
	pointers := make([]*T, rows)
	for r := range pointers {
		if args[r*width] != nil {
			pointers[r] = &values[r]
		}
	}
	return pointers
}
