package schema_test

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goAPI are the packages that other programs build on; commands/workerotel is a module of its own. The others
// say that they are not among them.
var goAPI = []string{
	"ledger", "ledger/event", "projection", "projection/query", "projection/audit", "commands",
	"commands/worker", "commands/schedule", "commands/inbox", "commands/outbox", "commands/archive",
	"commands/remote", "commands/jobledgertest",
}

// notAPI is in the package comment of every other package that another program could import.
const notAPI = "This package is not part of the Go API, and may change in any release."

// mostNames is how many exported names the API has at most; fields are not counted. It only shrinks: programs
// need about 560 of them.
const mostNames = 1100

// TestGoAPI: the exported names of the packages of the API, with their types, are those of testdata/api. A
// changed line is a change that other programs notice; -update takes it over.
func TestGoAPI(t *testing.T) {
	module, names := modulePath(t), 0
	if len(goAPI) > 15 {
		t.Errorf("%d packages, more than 15", len(goAPI))
	}
	defer func() {
		if names > mostNames {
			t.Errorf("%d names, more than %d: a new one comes where another goes", names, mostNames)
		}
	}()
	for name, lines := range exportedNames(t, module) {
		for _, l := range lines {
			if !strings.HasPrefix(l, "field ") {
				names++
			}
		}
		file := filepath.Join("..", "testdata", "api", strings.ReplaceAll(name, "/", "_")+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		for _, l := range before {
			if !slices.Contains(lines, l) {
				t.Errorf("%s: gone: %s", name, l)
			}
		}
		for _, l := range lines {
			if !slices.Contains(before, l) {
				t.Errorf("%s: new: %s", name, l)
			}
		}
	}
}

// exportedNames returns the lines of each package of the API, as the compiler has its types.
func exportedNames(t *testing.T, module string) map[string][]string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, name := range goAPI {
		args = append(args, module+"/"+name)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := make(map[string]string)
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		name, file, _ := strings.Cut(s.Text(), " ")
		exports[name] = file
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})
	all := make(map[string][]string)
	for _, name := range goAPI {
		p, err := imports.Import(module + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = namesOf(p)
	}
	return all
}

// namesOf returns a line for each exported constant, variable, function, type, field and method.
func namesOf(p *types.Package) []string {
	short := func(of *types.Package) string {
		if of == p {
			return ""
		}
		return of.Name()
	}
	lines := make(map[string]bool)
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		named, isType := o.(*types.TypeName)
		if !isType {
			lines[types.ObjectString(o, short)] = true
			continue
		}
		kind := "type " + name
		if named.IsAlias() {
			lines[kind+" = "+types.TypeString(types.Unalias(named.Type()), short)] = true
			continue
		}
		switch under := named.Type().Underlying().(type) {
		case *types.Struct:
			lines[kind+" struct"] = true
			for f := range under.Fields() {
				if f.Exported() {
					lines[fmt.Sprintf("field %s.%s %s", name, f.Name(), types.TypeString(f.Type(), short))] = true
				}
			}
		case *types.Interface:
			lines[kind+" interface"] = true
			for m := range under.Methods() {
				if m.Exported() {
					lines[fmt.Sprintf("method %s.%s%s", name, m.Name(),
						strings.TrimPrefix(types.TypeString(m.Signature(), short), "func"))] = true
				}
			}
		default:
			lines[kind+" "+types.TypeString(under, short)] = true
		}
		set := types.NewMethodSet(types.NewPointer(named.Type()))
		for s := range set.Methods() {
			if m := s.Obj(); m.Exported() && len(s.Index()) == 1 && !types.IsInterface(named.Type()) {
				lines[fmt.Sprintf("method %s.%s%s", name, m.Name(),
					strings.TrimPrefix(types.TypeString(m.Type(), short), "func"))] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(lines))
}

// TestPackagesSayWhatTheyAre: the comment of each package names the tests that hold it, which exist, and says
// whether other programs may build on it.
func TestPackagesSayWhatTheyAre(t *testing.T) {
	tests := testNames(t)
	for dir, comment := range packageComments(t) {
		internal := strings.Contains("/"+dir+"/", "/internal/") || strings.HasPrefix(dir, "cmd/")
		ofAPI := slices.Contains(goAPI, dir) || dir == "commands/workerotel"
		switch says := strings.Contains(comment, notAPI); {
		case says && (internal || ofAPI):
			t.Errorf("%s says for no reason that it is not part of the API", dir)
		case !says && !internal && !ofAPI:
			t.Errorf("%s does not say: %s", dir, notAPI)
		}
		_, held, found := strings.Cut(comment, "Held by ")
		if !found && !strings.HasSuffix(dir, "test") && !strings.HasSuffix(dir, "faultvfs") {
			t.Errorf("%s does not say by which tests it is held", dir)
		}
		for _, name := range testName.FindAllString(held, -1) {
			if !tests[name] {
				t.Errorf("%s is held by %s, which does not exist", dir, name)
			}
		}
	}
}

var (
	testName = regexp.MustCompile(`\b(Test|Fuzz|Example)[A-Z]\w*(/\w+)?`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)[A-Z]\w*)\(`)
)

// testNames are those of all tests, and of the scripts as TestScripts/NAME.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	scripts, err := filepath.Glob("../testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		names["TestScripts/"+strings.TrimSuffix(filepath.Base(s), ".txtar")] = true
	}
	eachFile(t, []string{".go"}, func(_, text string) {
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			names[m[1]] = true
		}
	})
	return names
}

// packageComments are those of all packages, by their folders below the top, in one line each.
func packageComments(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	eachFile(t, []string{".go"}, func(file, text string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text,
			parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(file)
		all[dir] += strings.Join(strings.Fields(parsed.Doc.Text()), " ")
	})
	return all
}

// TestPastHasExamples: each call of a Service that looks back has an Example, alone in its file, which is so
// shown as a whole program, with its output.
func TestPastHasExamples(t *testing.T) {
	calls, err := parser.ParseFile(token.NewFileSet(), "../commands/past.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range calls.Decls {
		call, ok := d.(*ast.FuncDecl)
		if !ok || !call.Name.IsExported() {
			continue
		}
		file := "../commands/example_" + strings.ToLower(call.Name.Name) + "_test.go"
		example, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		found := doc.Examples(example)
		if len(found) != 1 || found[0].Name != "Service_"+call.Name.Name || found[0].Play == nil ||
			found[0].Output == "" {
			t.Errorf("%s is not a whole program with an output", file)
		}
	}
}
