package schema_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// eachFile calls fn for each file of the repository with one of these endings, except what is below testdata.
func eachFile(t *testing.T, endings []string, fn func(file, text string)) {
	t.Helper()
	if err := walkFiles(endings, fn); err != nil {
		t.Fatal(err)
	}
}

func walkFiles(endings []string, fn func(file, text string)) error {
	const root = ".."
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (name == "testdata" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains(endings, path.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		fn(filepath.ToSlash(relative), string(text))
		return err
	})
}

// source is a file of Go that is not a test.
type source struct {
	file, dir, text string
	parsed          *ast.File
}

// forTests reports whether it is of a package for tests.
func (s source) forTests() bool {
	return strings.HasSuffix(s.dir, "test") || strings.Contains(s.dir, "test/")
}

// imports are the paths that it imports.
func (s source) imports() (all []string) {
	for _, spec := range s.parsed.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // it was parsed
		all = append(all, imported)
	}
	return all
}

// readSources reads and parses them once for all tests.
var readSources = sync.OnceValues(func() (all []source, err error) {
	walked := walkFiles([]string{".go"}, func(file, text string) {
		if strings.HasSuffix(file, "_test.go") || err != nil {
			return
		}
		s := source{file: file, dir: path.Dir(file), text: text}
		s.parsed, err = parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		all = append(all, s)
	})
	if err == nil {
		err = walked
	}
	return all, err
})

func sources(t *testing.T) []source {
	t.Helper()
	all, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
