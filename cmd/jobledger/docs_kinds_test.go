package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

const kindsPage = "docs/kinds.md"

// TestDocsListEveryKindAndField: the tables of docs/kinds.md are what package event says: in the comments of
// its bodies and their fields, in the tags, and in what it writes where nothing is set.
func TestDocsListEveryKindAndField(t *testing.T) {
	page := readPage(t, kindsPage)
	bodies := parseBodies(t)
	var kinds strings.Builder
	kinds.WriteString("| n | kind | what happened | states | fields of `data` |\n|--:|---|---|---|---|\n")
	meanings := make(map[string]*meaning)
	for _, kind := range event.Kinds() {
		body := emptyBody(t, kind)
		var names []string
		for _, f := range bodies.fieldsOf(t, body) {
			names = append(names, f.name)
			if meanings[f.name] == nil {
				meanings[f.name] = &meaning{}
			}
			meanings[f.name].add(kind, f)
		}
		data := ""
		if len(names) > 0 {
			data = "`" + strings.Join(names, ", ") + "`"
		}
		what, states := bodies.says(t, typeName(body), kind)
		fmt.Fprintf(&kinds, "| %d | `%s` | %s | %s | %s |\n", int(kind), kind, what, states, data)
	}
	var fields strings.Builder
	fields.WriteString("| field | type | meaning |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(meanings)) {
		m := meanings[name]
		if len(m.texts) == 0 {
			t.Errorf("ledger/event: no field %s has a comment that says what it means", name)
		}
		fmt.Fprintf(&fields, "| `%s` | %s | %s |\n", name, m.types(), m)
	}
	written := withTable(t, page, "The kinds", kinds.String())
	written = withTable(t, written, "The fields", fields.String())
	switch {
	case written == page:
	case *update:
		if err := os.WriteFile(kindsPage, []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what package event says: run with -update, and review the diff", kindsPage)
	}
}

// withTable returns page with this table as the first below a heading.
func withTable(t *testing.T, page, heading, table string) string {
	t.Helper()
	before, rest, ok := strings.Cut(page, "\n## "+heading+"\n\n")
	_, after, found := strings.Cut(rest, "\n\n")
	if !ok || !found {
		t.Fatalf("%s has no table below %q", kindsPage, heading)
	}
	return before + "\n## " + heading + "\n\n" + table + "\n" + after
}

// emptyBody returns a body of a kind without values.
func emptyBody(t *testing.T, kind event.Kind) event.Body {
	t.Helper()
	b, err := event.Decode(kind, "{}", nil, &event.Worker{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func typeName(b event.Body) string { return reflect.TypeOf(b).Elem().Name() }

// bodies are the structs of package event as they are written, and what names of Go are in JSON.
type bodies struct {
	structs  map[string]*ast.StructType
	comments map[string]string
	names    map[string]string
}

func parseBodies(t *testing.T) bodies {
	t.Helper()
	b := bodies{make(map[string]*ast.StructType), make(map[string]string), make(map[string]string)}
	files, err := filepath.Glob("../../ledger/event/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			s := g.Specs[0].(*ast.TypeSpec)
			if of, ok := s.Type.(*ast.StructType); ok {
				b.structs[s.Name.Name], b.comments[s.Name.Name] = of, g.Doc.Text()
				for _, f := range of.Fields.List {
					if tag := tagOf(f); tag != "" && len(f.Names) == 1 {
						b.names[f.Names[0].Name], _, _ = strings.Cut(tag, ",")
					}
				}
			}
		}
	}
	return b
}

func tagOf(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	text, _ := strconv.Unquote(f.Tag.Value)
	return reflect.StructTag(text).Get("event")
}

// says returns what the comment of a body says happened, and from which states to which.
func (b bodies) says(t *testing.T, name string, kind event.Kind) (what, states string) {
	t.Helper()
	text, states, _ := strings.Cut(strings.TrimSuffix(b.comments[name], ".\n"), "\nStates: ")
	_, text, ok := strings.Cut(strings.Join(strings.Fields(text), " "), name+": ")
	what, _, _ = strings.Cut(text, ". ")
	switch {
	case !ok:
		t.Errorf("ledger/event: the comment of %s does not say what happened: // %s: …", name, name)
	case kind.HasSeq() != (states != ""):
		t.Errorf("ledger/event: the comment of %s ends with a line // States: a → b. if it changes a job, "+
			"and else without", name)
	case kind.HasSeq():
	case kind.OfJob():
		states = "none, `seq` null"
	default:
		states = "none, `job` null"
	}
	return strings.TrimSuffix(what, "."), states
}

type docField struct{ name, typ, empty, text string }

// fieldsOf returns the fields that a kind writes, in order.
func (b bodies) fieldsOf(t *testing.T, body event.Body) (fields []docField) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(event.AppendPublic(nil, body, event.Worker{}), &members); err != nil {
		t.Fatal(err)
	}
	var add func(name string)
	add = func(name string) {
		for _, f := range b.structs[name].Fields.List {
			tag := tagOf(f)
			if tag == "" {
				add(types.ExprString(f.Type))
				continue
			}
			d := docField{typ: types.ExprString(f.Type)}
			d.name, _, _ = strings.Cut(tag, ",")
			raw, ok := members[d.name]
			switch {
			case strings.Contains(tag, ",required"):
			case !ok:
				d.empty = "absent"
			case string(raw) == "null":
				d.empty = "null"
			default:
				d.empty = "`" + string(raw) + "`"
			}
			d.text = b.inJSON(cmp.Or(f.Doc.Text(), f.Comment.Text()), tag, d.empty)
			fields = append(fields, d)
		}
	}
	add(typeName(body))
	if body.Kind().ShowsProcess() {
		for _, f := range b.structs["Worker"].Fields.List[1:] {
			name := strings.ToLower(f.Names[0].Name)
			text := b.inJSON(cmp.Or(f.Doc.Text(), f.Comment.Text()), "", "null")
			fields = append(fields, docField{name, types.ExprString(f.Type), "", text})
		}
	}
	return fields
}

var (
	nothing   = regexp.MustCompile(`(^|; )(0|nil|zero|none|""): `)
	goName    = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`)
	snakeName = regexp.MustCompile(`\b[a-z]+_[a-z_]+\b`)
	oneOf     = regexp.MustCompile(`,oneof=([a-z_|]+)`)
)

// inJSON returns the comment of a field as it is said of JSON: its own name for what Go calls 0 or nil, and
// for other fields, and the words that it may have.
func (b bodies) inJSON(comment, tag, empty string) string {
	text := strings.TrimSuffix(strings.Join(strings.Fields(comment), " "), ".")
	text = nothing.ReplaceAllString(text, "${1}"+empty+": ")
	text = snakeName.ReplaceAllString(text, "`$0`")
	text = goName.ReplaceAllStringFunc(text, func(word string) string {
		if name := b.names[word]; name != "" {
			return "`" + name + "`"
		}
		return word
	})
	m := oneOf.FindStringSubmatch(tag)
	if m == nil || text == "" {
		return text
	}
	words := strings.Split(m[1], "|")
	if strings.Contains(text, words[0]) {
		return text
	}
	last := len(words) - 1
	list := ": `" + strings.Join(words[:last], "`, `") + "` or `" + words[last] + "`"
	what, more, _ := strings.Cut(text, "; ")
	return strings.TrimSuffix(what+list+"; "+more, "; ")
}

// meaning is what the fields of one name say, of all kinds.
type meaning struct {
	bases  []string
	empty  []string
	texts  []string
	ofThat [][]string
}

func (m *meaning) add(kind event.Kind, f docField) {
	base := map[string]string{"string": "text", "JobID": "text", "int": "number", "int64": "number",
		"*int": "number", "*float64": "number", "float64": "number", "time.Time": "time",
		"time.Duration": "seconds", "bool": "true or false", "[]string": "list of text",
		"map[string]string": "object of text", "[]Left": "list"}[f.typ]
	if base == "true or false" && f.empty == "absent" {
		base = "true"
	}
	addTo(&m.bases, base)
	if f.empty == "absent" || f.empty == "null" {
		addTo(&m.empty, f.empty)
	}
	if f.text == "" {
		return
	}
	i := slices.Index(m.texts, f.text)
	if i < 0 {
		i = len(m.texts)
		m.texts, m.ofThat = append(m.texts, f.text), append(m.ofThat, nil)
	}
	m.ofThat[i] = append(m.ofThat[i], "`"+kind.String()+"`")
}

func addTo(list *[]string, word string) {
	if !slices.Contains(*list, word) {
		*list = append(*list, word)
	}
}

func (m *meaning) types() string {
	all := append(slices.Clone(m.bases), slices.Sorted(slices.Values(m.empty))...)
	last := len(all) - 1
	return strings.TrimPrefix(strings.Join(all[:last], ", ")+" or "+all[last], " or ")
}

// String is the first text, and what others say of their kinds.
func (m *meaning) String() string {
	var parts []string
	for i, text := range m.texts {
		if i > 0 {
			text = "Of " + strings.Join(m.ofThat[i], ", ") + ": " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ". ")
}

// TestKindsAreWhole: each kind of events is in every file that has to know it. Those that miss one are named.
func TestKindsAreWhole(t *testing.T) {
	t.Parallel()
	text := make(map[string]string)
	for _, path := range []string{"commands", "projection/defaults", "projection/evolve.go",
		"cmd/jobledger/internal/words", "schema/sqlite", "schema/postgres", "testdata/events.golden.jsonl",
		"cmd/jobledger/docs/kinds.md"} {
		err := filepath.WalkDir("../../"+path, func(file string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && !strings.HasSuffix(file, "_test.go") {
				text[path] += readPage(t, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text["commands"] += text["projection/defaults"] // which makes the event that a command records
	bodies := parseBodies(t)
	for i, kind := range event.Kinds() {
		body := emptyBody(t, kind)
		name := typeName(body)
		want := func(path, part, what string) {
			if !strings.Contains(text[path], part) {
				t.Errorf("%s (%d): %s %s", kind, int(kind), path, what)
			}
		}
		bodies.says(t, name, kind) // ledger/event/body.go
		full := event.AppendPublic(nil, ledgertest.SampleEvents(t)[2*i].Body, event.Worker{})
		for _, f := range bodies.fieldsOf(t, body) {
			if !strings.Contains(string(full), `"`+f.name+`":`) {
				t.Errorf("%s (%d): ledger/event/fields.go does not write the field %s", kind, int(kind), f.name)
			}
		}
		row := fmt.Sprintf("(%d, '%s')", int(kind), kind)
		want("schema/sqlite", row, "has no migration that adds it to the table kinds")
		want("schema/postgres", row, "has no migration that adds it to the table kinds")
		if kind.HasSeq() {
			want("projection/evolve.go", "case *event."+name+":", "does not say what it makes of a job")
		}
		want("commands", "event."+name, "records it nowhere")
		want("cmd/jobledger/internal/words", "*event."+name, "does not describe it (describe.go)")
		want("testdata/events.golden.jsonl", `"kind":"`+kind.String()+`"`, "has no line of it: "+
			"go test ./ledger/event -update")
		want("cmd/jobledger/docs/kinds.md", fmt.Sprintf("| %d | `%s` |", int(kind), kind), "has no row of it: "+
			"go test ./cmd/jobledger -run TestDocsListEveryKindAndField -update")
	}
}
