package schema_test

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsNameWhatExists: each Go name and each path in backticks of the two pages that are about names,
// go.md and glossary.md, is there. Names that are not package's of this module, and commands, are not looked
// at.
func TestDocsNameWhatExists(t *testing.T) {
	known := goNames(t)
	docs := filepath.Join("..", "cmd", "jobledger", "docs")
	checked := 0
	for _, page := range []string{"glossary.md", "go.md"} {
		text, err := os.ReadFile(filepath.Join(docs, page))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			cells := strings.Split(line, "|")
			bare := ""      // the package of names without one
			strict := false // they are names of Go, and nothing else
			if page == "go.md" && len(cells) == 4 && strings.HasPrefix(cells[1], " `") {
				bare = strings.Trim(cells[1], " `")
				strict = known[path.Base(bare)] != nil && strings.Contains(line, "/") || known[bare] != nil
			}
			for n, cell := range cells {
				for _, name := range quoted.FindAllStringSubmatch(cell, -1) {
					word := goName.FindString(name[1])
					first, rest, dotted := strings.Cut(word, ".")
					switch {
					case strings.Contains(name[1], " ") && !strings.ContainsAny(name[1], "{("):
						continue // a command
					case name[1] == pathWithin(name[1]) && page == "glossary.md" && n == 3:
						checked++
						if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(name[1]))); err != nil {
							t.Errorf("%s:%d: there is no %s", page, i+1, name[1])
						}
					case dotted && known[first] != nil:
						checked++
						if !known[first][rest] && !isModule(word) {
							t.Errorf("%s:%d: there is no %s", page, i+1, word)
						}
						bare = first
					case !dotted && exported.MatchString(word) && (strict && n == 2 || page == "glossary.md" && n == 3):
						checked++
						if of := known[path.Base(bare)]; of == nil || !of[word] && !hasMember(of, word) {
							t.Errorf("%s:%d: there is no %s in %s", page, i+1, word, bare)
						}
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d names were checked", checked)
	}
}

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	goName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*`)
	exported = regexp.MustCompile(`^[A-Z]`)
)

// pathWithin is text if it is a path within the module.
func pathWithin(text string) string {
	if strings.Contains(text, "/") && !strings.ContainsAny(text, " <>:*…") {
		return text
	}
	return ""
}

// isModule reports whether word is the name of a file, such as jobledger.db.
func isModule(word string) bool {
	return strings.HasSuffix(word, ".db") || strings.HasSuffix(word, ".go")
}

// hasMember reports whether a type of a package has a member of this name.
func hasMember(names map[string]bool, member string) bool {
	for name := range names {
		if strings.HasSuffix(name, "."+member) {
			return true
		}
	}
	return false
}

// goNames returns the names of each package, by the last element of its path: what it declares, and its
// fields and methods as Type.Name.
func goNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	known := make(map[string]map[string]bool)
	for _, s := range sources(t) {
		of := known[s.parsed.Name.Name]
		if of == nil {
			of = make(map[string]bool)
			known[s.parsed.Name.Name] = of
		}
		for _, d := range s.parsed.Decls {
			addNames(of, d)
		}
	}
	// fields of a type that another one of its package embeds count for both
	for _, of := range known {
		for name := range of {
			outer, inner, ok := strings.Cut(name, ".")
			if !ok || !of[inner] {
				continue
			}
			for other := range of {
				if field, ok := strings.CutPrefix(other, inner+"."); ok {
					of[outer+"."+field] = true
				}
			}
		}
	}
	return known
}

// addNames adds what d declares.
func addNames(of map[string]bool, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			of[d.Name.Name] = true
			return
		}
		of[typeName(d.Recv.List[0].Type)+"."+d.Name.Name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					of[n.Name] = true
				}
			case *ast.TypeSpec:
				of[s.Name.Name] = true
				if body, ok := s.Type.(*ast.StructType); ok {
					for _, f := range body.Fields.List {
						for _, n := range f.Names {
							of[s.Name.Name+"."+n.Name] = true
						}
						if len(f.Names) == 0 {
							of[s.Name.Name+"."+typeName(f.Type)] = true
						}
					}
				}
			}
		}
	}
}

// typeName is the name of a type, without its package, its star and its arguments.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestGlossaryIsInOrder: a word is found where the alphabet has it.
func TestGlossaryIsInOrder(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "cmd", "jobledger", "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	before := ""
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		word, isRow := strings.CutPrefix(strings.ToLower(cells[0]), "| ")
		if !isRow || word == "word" {
			continue
		}
		if word < before {
			t.Errorf("%q stands after %q", word, before)
		}
		before = word
	}
}
