package schema

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// SelectPostgresObjects lists the tables, indexes, functions, triggers and views of the first schema in
// search_path, by kind and name. Each row is kind, name and definition; the definition does not depend on the
// version of the server.
const SelectPostgresObjects = `SELECT kind, name, definition FROM (
    SELECT CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END AS kind, c.relname::text AS name, (
        SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) ||
            CASE WHEN a.attnotnull THEN ' not null' ELSE '' END, ', ' ORDER BY a.attnum)
        FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS definition
    FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v')
    UNION ALL
    SELECT 'index', c.relname, t.relname || CASE WHEN i.indisunique THEN ' unique' ELSE '' END ||
        CASE WHEN i.indisvalid THEN '' ELSE ' invalid' END ||
        ' (' || (SELECT string_agg(pg_get_indexdef(i.indexrelid, k, true), ', ' ORDER BY k)
                 FROM generate_series(1, i.indnatts) k) || ')' ||
        coalesce(' where ' || pg_get_expr(i.indpred, i.indrelid), '')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
    WHERE c.relnamespace = current_schema()::regnamespace
    UNION ALL
    SELECT 'function', f.proname, md5(f.prosrc)
    FROM pg_proc f WHERE f.pronamespace = current_schema()::regnamespace
    UNION ALL
    SELECT 'trigger', g.tgname, t.relname || ' ' || g.tgenabled::text || ' ' || g.tgtype || ' ' ||
        f.proname || '(' || encode(g.tgargs, 'escape') || ')' ||
        coalesce(' ' || substring(pg_get_triggerdef(g.oid) FROM 'WHEN \(.*\) EXECUTE'), '')
    FROM pg_trigger g JOIN pg_class t ON t.oid = g.tgrelid JOIN pg_proc f ON f.oid = g.tgfoid
    WHERE t.relnamespace = current_schema()::regnamespace AND NOT g.tgisinternal
    UNION ALL
    SELECT 'rule', t.relname || '.' || r.rulename, md5(pg_get_ruledef(r.oid))
    FROM pg_rewrite r JOIN pg_class t ON t.oid = r.ev_class
    WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p')
) AS objects ORDER BY kind COLLATE "C", name COLLATE "C"`

//go:embed postgres/objects.txt
var postgresObjects string

// PostgresObjects returns what SelectPostgresObjects finds in a new ledger: the definitions by "kind name".
var PostgresObjects = sync.OnceValue(func() map[string]string {
	objects := make(map[string]string)
	for line := range strings.Lines(postgresObjects) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		name, definition, _ := strings.Cut(rest, "\t")
		objects[kind+" "+name] = definition
	}
	return objects
})

var creation = regexp.MustCompile(
	`^CREATE (?:OR REPLACE )?(?:UNIQUE |CONSTRAINT )?(TABLE|INDEX|FUNCTION|TRIGGER|VIEW) (\w+)`)

// PostgresCreations returns the statements that create the objects of PostgresObjects, by the same "kind
// name". An index that belongs to a table's constraint has no statement. A statement of a trigger does not
// say that it fires always, also in a session that acts as a replica. Run them as migrations are run, after
// PostgresPath.
var PostgresCreations = sync.OnceValues(func() (map[string]string, error) {
	steps, err := Postgres()
	creations := make(map[string]string)
	for _, step := range steps {
		for _, statement := range statements(step.SQL) {
			if m := creation.FindStringSubmatch(statement); m != nil {
				creations[strings.ToLower(m[1])+" "+m[2]] = statement
			}
		}
	}
	return creations, err
})

// PostgresPath sets the search path, for one transaction, in which a ledger's objects are created.
const PostgresPath = `SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)`

// statements splits a migration into statements, without the comments between them. A semicolon at the end
// of a line ends a statement, unless it is in the body of a function, which is between two $$.
func statements(sql string) (list []string) {
	var statement strings.Builder
	quoted := false
	for line := range strings.Lines(sql) {
		if text := strings.TrimSpace(line); statement.Len() == 0 && (text == "" || strings.HasPrefix(text, "--")) {
			continue
		}
		statement.WriteString(line)
		if strings.Count(line, "$$")%2 == 1 {
			quoted = !quoted
		}
		if !quoted && strings.HasSuffix(line, ";\n") {
			list = append(list, strings.TrimSuffix(statement.String(), ";\n"))
			statement.Reset()
		}
	}
	return list
}
