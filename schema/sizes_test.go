package schema_test

import (
	"os"
	"path"
	"strings"
	"testing"
)

// A package is one idea that a reader can hold: neither more than mostCode lines, nor a room of fewer than
// leastCode that one other package enters.
const (
	mostCode  = 2500
	leastCode = 150
)

// oneImporter are the packages of fewer than leastCode lines that one other package imports (tests do not
// count), with the reason for which they are packages. The list only shrinks.
var oneImporter = map[string]string{
	"ledger/internal/sqlite/lockholders": "it reads the kernel's list of locks, and nothing of the engine",
	"cmd/jobledger/internal/web/sqltext": "statements of SQL that pages show, apart from the Go that shows them",
}

// room is a package: how many lines of code it has, and who imports it.
type room struct {
	code      int
	importers map[string]bool
}

func TestPackagesAreOfOneSize(t *testing.T) {
	rooms := readRooms(t)
	for name, r := range rooms {
		if r.code > mostCode {
			t.Errorf("%s has %d lines of code, more than %d: it is more than one idea", name, r.code, mostCode)
		}
		small := r.code < leastCode && len(r.importers) == 1
		if _, listed := oneImporter[name]; small && !listed {
			t.Errorf("%s has %d lines of code and one importer: make it files of that, or say in oneImporter why not",
				name, r.code)
		}
	}
	for name := range oneImporter {
		if rooms[name] == nil {
			t.Errorf("oneImporter names %s, which is not there", name)
		}
	}
}

// readRooms reads all packages of this module, without their tests and without what is for tests alone.
func readRooms(t *testing.T) map[string]*room {
	t.Helper()
	module := modulePath(t)
	rooms := make(map[string]*room)
	of := func(name string) *room {
		if rooms[name] == nil {
			rooms[name] = &room{importers: make(map[string]bool)}
		}
		return rooms[name]
	}
	for _, s := range sources(t) {
		if _, err := os.Stat(path.Join("..", s.dir, "go.mod")); err == nil {
			continue // a module of its own
		}
		of(s.dir).code += codeLines(s.text)
		for _, imported := range s.imports() {
			if to, ours := strings.CutPrefix(imported, module+"/"); ours && to != s.dir {
				of(to).importers[s.dir] = true
			}
		}
	}
	for name, r := range rooms {
		if r.code == 0 || strings.HasSuffix(path.Base(name), "test") {
			delete(rooms, name)
		}
	}
	return rooms
}

// codeLines counts the lines of a file that are neither blank nor a comment.
func codeLines(text string) (n int) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
