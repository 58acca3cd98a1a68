package ledgertest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "jobledger/ledger/ledgertest"
)

// A package whose tests do not define -soak makes "go test ./... -soak 10m" fail as a whole.
func TestSoakFlagKnownToEveryPackage(t *testing.T) {
	root := filepath.Join("..", "..")
	knows := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
			return filepath.SkipDir // another module
		}
		if entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		knows[dir] = knows[dir] || slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
			return strings.HasSuffix(spec.Path.Value, `/ledger/ledgertest"`)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(knows) < 6 {
		t.Errorf("found only %d packages with tests", len(knows))
	}
	for dir, ok := range knows {
		if !ok {
			t.Errorf("%s: no test imports ledger/ledgertest; import it as _", dir)
		}
	}
}
