package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// counted matches a number with a plural in a text, unless the number is a total: "2 of %d jobs".
var counted = regexp.MustCompile(`(^|[^ ]|[^f] |[^o]f )%d (jobs|events|workers|leases|lines|attempts|rows|` +
	`queues|claims|payloads|commands|bytes|files)\b`)

// TestCountsAgreeWithTheirNouns finds texts of the program that would say "1 jobs", because they do not use
// Count. Sizes that are shown only when they are large may say "bytes in all" or "bytes left out".
func TestCountsAgreeWithTheirNouns(t *testing.T) {
	large := regexp.MustCompile(`iB \(%d bytes\)|%d bytes (in all|were left out|left out)`)
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
			filepath.Base(filepath.Dir(path)) == "bench" {
			return err
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && counted.MatchString(l.Value[1:]) &&
				!large.MatchString(l.Value) {
				t.Errorf("%s: %s: use Count", path, l.Value)
			}
			return true
		})
		return nil
	})
	if err != nil || files < 50 {
		t.Errorf("%d files, %v", files, err)
	}
	for text, want := range map[string]bool{`%d jobs`: true, `have %d events`: true, `1 of %d jobs`: false,
		`%d bytes`: true} {
		if counted.MatchString(text) != want {
			t.Errorf("%s: found %t, want %t", text, !want, want)
		}
	}
}
