package schema_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// stages are the packages in the order of the data: each may import those before it and none behind it. A package
// that is not here belongs to the nearest one above it.
var stages = []string{"schema", "ledger", "ledger/ledgertest", "projection", "commands", "commands/worker", "cmd/jobledger"}

func TestPackagesImportOnlyTheStagesBeforeThem(t *testing.T) {
	root := ".."
	seen := make(map[int]bool)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		from := stageOf(filepath.ToSlash(dir))
		if from < 0 {
			t.Errorf("%s: this package has no place among the stages", dir)
			return nil
		}
		seen[from] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			to, ours := strings.CutPrefix(imported, "jobledger/")
			switch {
			case !ours:
			case to == "ledger/ledgertest":
				t.Errorf("%s imports %s: it is for tests", path, imported)
			case stageOf(to) > from || stageOf(to) < 0:
				t.Errorf("%s imports %s: that is a later stage", path, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, stage := range stages {
		if !seen[i] {
			t.Errorf("the stage %s has no files", stage)
		}
	}
}

func stageOf(dir string) int {
	for ; dir != "."; dir = filepath.ToSlash(filepath.Dir(dir)) {
		if i := slices.Index(stages, dir); i >= 0 {
			return i
		}
	}
	return -1
}
