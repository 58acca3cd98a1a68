package commands_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// appenders are the functions that append events (I6). journal.Record is the write path. Loader.Add copies
// the history of another ledger: it decides nothing, folds its events with the same Evolve, and writes its
// rows from that fold.
var appenders = []string{"commands/internal/journal.Record", "projection/audit.Loader.Add"}

func TestRecordAloneAppends(t *testing.T) {
	var got []string
	root := ".."
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && file != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil || dir == "ledger" || strings.HasSuffix(dir, "test") { // Tx itself; packages for tests
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, f := range appending(parsed) {
			got = append(got, filepath.ToSlash(dir)+"."+f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if !slices.Equal(got, appenders) {
		t.Errorf("functions that append events:\n got %v\nwant %v", got, appenders)
	}
}

// appending returns the functions of a file that refer to a method Append, such as (*ledger.Tx).Append. Its
// calls have a context and an event; one with a single argument, as of proof.Proof.Append, is another method.
func appending(file *ast.File) (names []string) {
	imported := make(map[string]bool)
	for _, spec := range file.Imports {
		if spec.Name != nil {
			imported[spec.Name.Name] = true
			continue
		}
		name, _ := strconv.Unquote(spec.Path.Value)
		imported[path.Base(name)] = true
	}
	for _, decl := range file.Decls {
		name := "a variable"
		if f, ok := decl.(*ast.FuncDecl); ok {
			if name = f.Name.Name; f.Recv != nil {
				receiver := f.Recv.List[0].Type
				if star, ok := receiver.(*ast.StarExpr); ok {
					receiver = star.X
				}
				name = fmt.Sprintf("%s.%s", receiver, name)
			}
		}
		others := make(map[ast.Node]bool)
		ast.Inspect(decl, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 {
				others[call.Fun] = true
			}
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "Append" || others[s] {
				return true
			}
			if x, ok := s.X.(*ast.Ident); !ok || !imported[x.Name] {
				names = append(names, name)
			}
			return true
		})
	}
	return names
}
