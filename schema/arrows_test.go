package schema_test

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// storeys are what the packages are about, from the tables up. A package belongs to the storey of the longest
// listed name that its own begins with, and imports nothing of a higher one.
var storeys = map[string]int{
	"schema":          1, // the tables, their guards and views
	"ledger/event":    2, // what can happen; and what is pure: parsing, trees of hashes, ticks
	"ledger/jsonscan": 2, "ledger/proof": 2, "ledger/segment": 2, "ledger/ownerfile": 2, "ledger/failpoint": 2,
	"commands/cron":    2,
	"ledger":           3, // the append-only store and its engines
	"projection":       4, // what the events add up to
	"projection/query": 5, // answers, each by one maker
	"commands":         6, // what may be asked of a job; workers, schedules, archives
	"cmd/jobledger":    7, // the command line and the server
}

func storeyOf(dir string) string {
	for ; dir != "." && dir != ""; dir = path.Dir(dir) {
		if storeys[dir] != 0 {
			return dir
		}
	}
	return ""
}

// stages are the packages in the order in which data flows. A package may import those of earlier lines
// only, not its neighbours on the same line. A package that is not listed belongs to its nearest listed
// parent folder. To add a package, add a line, or a name to the line of its neighbours.
var stages = [][]string{
	{"ledger/jsonscan"},
	{"schema", "ledger/event", "ledger/failpoint", "ledger/proof", "commands/argv", "commands/cron",
		"commands/worker/child",
		"ledger/ownerfile", "ledger/process", "commands/internal/usertx",
		"cmd/jobledger/internal/buildinfo"}, // import nothing but that
	{"commands/worker/attemptlog",
		"ledger/internal/engine", "ledger/internal/row", "ledger/prefetch", "ledger/segment",
		"commands/internal/check"},
	{"ledger/internal/sqlite/doorbell", "ledger/internal/postgres/notify", "ledger/internal/session"},
	{"ledger/internal/sqlite/writequeue", "ledger/internal/sqlite/walsync",
		"ledger/internal/sqlite/place"},
	{"ledger/internal/sqlite", "ledger/internal/postgres", "ledger/internal/sqlite/lockholders"},
	{"ledger"},
	{"ledger/ledgertest", "ledger/tree"},
	{"projection/internal/table", "projection/internal/lane"},
	{"projection/deps", "projection/keyframe", "projection/limit", "projection/defaults"},
	{"projection/group"},
	{"projection"},
	{"projection/claims"},
	{"projection/schedules", "projection/follow"},
	{"projection/fold", "projection/past", "projection/internal/queues"},
	{"projection/audit/differ"},
	{"projection/rebuild"},
	{"projection/audit", "projection/attempts", "projection/status",
		"projection/internal/historytest"},
	{"projection/verdict"},
	{"projection/query"},
	{"commands/internal/journal"},
	{"commands/internal/sweep", "commands/internal/burst"},
	{"commands"},
	{"commands/load"},
	{"commands/schedule"},
	{"commands/remote/wire"},
	{"commands/worker", "commands/remote", "commands/outbox", "commands/archive", "commands/commandstest"},
	{"commands/jobledgertest", "commands/workerotel"},
	{"cmd/jobledger/internal/await", "cmd/jobledger/internal/bulk", "cmd/jobledger/internal/crontab",
		"cmd/jobledger/internal/fault",
		"cmd/jobledger/internal/words"},
	{"cmd/jobledger/internal/when", "cmd/jobledger/internal/prove", "cmd/jobledger/internal/logs"},
	{"cmd/jobledger/internal/witness", "cmd/jobledger/internal/find"},
	{"cmd/jobledger/internal/cli", "cmd/jobledger/internal/state"},
	{"cmd/jobledger/internal/cli/archived", "cmd/jobledger/internal/cli/jobcmd",
		"cmd/jobledger/internal/print", "cmd/jobledger/internal/export"},
	{"cmd/jobledger/internal/cli/jobverb"},
	{"cmd/jobledger/internal/bench", "cmd/jobledger/internal/demo", "cmd/jobledger/internal/doctor",
		"cmd/jobledger/internal/files", "cmd/jobledger/internal/files/joblines"},
	{"cmd/jobledger/internal/incident", "cmd/jobledger/internal/many", "cmd/jobledger/internal/nighttest"},
	{"cmd/jobledger/internal/web/access", "cmd/jobledger/internal/web/chart",
		"cmd/jobledger/internal/web/hook", "cmd/jobledger/internal/web/sqltext"},
	{"cmd/jobledger/internal/web/draw"},
	{"cmd/jobledger/internal/web/view"},
	{"cmd/jobledger/internal/web/door"},
	{"cmd/jobledger/internal/web/api", "cmd/jobledger/internal/web/work"},
	{"cmd/jobledger/internal/web/act", "cmd/jobledger/internal/web/apidoc"},
	{"cmd/jobledger/internal/web/frame"},
	{"cmd/jobledger/internal/web/queues"},
	{"cmd/jobledger/internal/web/page", "cmd/jobledger/internal/web/then",
		"cmd/jobledger/internal/web/timetable"},
	{"cmd/jobledger/internal/web"},
	{"cmd/jobledger/internal/verbs/produce", "cmd/jobledger/internal/verbs/work",
		"cmd/jobledger/internal/verbs/operate", "cmd/jobledger/internal/verbs/see",
		"cmd/jobledger/internal/verbs/audit", "cmd/jobledger/internal/verbs/maintain",
		"cmd/jobledger/internal/verbs/prove"},
	{"cmd/jobledger"},
}

func TestPackagesImportEarlierStagesOnly(t *testing.T) {
	module := modulePath(t)
	seen := make(map[string]bool)
	for _, s := range sources(t) {
		from, stage := stageOf(s.dir)
		if from == "" {
			t.Errorf("%s: this package is not listed in stages", s.dir)
			continue
		}
		seen[from] = true
		for _, imported := range s.imports() {
			dir, ours := strings.CutPrefix(imported, module+"/")
			to, toStage := stageOf(dir)
			switch {
			case !ours || to == from:
			case strings.HasSuffix(to, "test") && !strings.HasSuffix(from, "test"):
				t.Errorf("%s imports %s: it is for tests", s.file, imported)
			case storeys[storeyOf(to)] > storeys[storeyOf(from)]:
				t.Errorf("%s imports %s: that is a higher storey", s.file, imported)
			case to == "" || toStage >= stage:
				t.Errorf("%s imports %s: that is not an earlier stage", s.file, imported)
			}
		}
	}
	for _, stage := range stages {
		for _, name := range stage {
			if storeyOf(name) == "" {
				t.Errorf("the package %s is in no storey", name)
			}
			if !seen[name] {
				t.Errorf("the package %s has no files", name)
			}
		}
	}
}

// modulePath returns the path of the module, which may have been moved.
func modulePath(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	return modfile.ModulePath(text)
}

// stageOf returns the listed package that dir belongs to, and the number of its stage; "" if there is none.
func stageOf(dir string) (name string, stage int) {
	for ; dir != "." && dir != ""; dir = path.Dir(dir) {
		for i, names := range stages {
			if slices.Contains(names, dir) {
				return dir, i
			}
		}
	}
	return "", -1
}

// The server asks the same questions as the command line, and neither its parser nor its verbs.
func TestServerImportsNoCommandLine(t *testing.T) {
	path := modulePath(t)
	const in = "cmd/jobledger/internal/"
	seen := make(map[string]bool)
	var visit func(dir, from string)
	visit = func(dir, from string) {
		if strings.HasPrefix(dir, in+"cli") || strings.HasPrefix(dir, in+"verbs") {
			t.Errorf("%s imports %s", from, dir)
			return
		}
		if seen[dir] {
			return
		}
		seen[dir] = true
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				name := strings.Trim(spec.Path.Value, `"`)
				if to, own := strings.CutPrefix(name, path+"/"); own && !strings.HasSuffix(file, "_test.go") {
					visit(to, dir)
				}
			}
		}
	}
	visit(in+"web", "the test")
	if len(seen) < 30 {
		t.Errorf("only %d packages were seen", len(seen))
	}
}
