package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/projection/audit"
)

const readme = "../../README.md"

// readPage returns a page of Markdown.
func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pages returns the README and every page of docs.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("docs/*.md")
	if err != nil || len(found) == 0 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	return append(found, readme)
}

func TestReadmeSize(t *testing.T) {
	const most = 12 << 10
	if n := len(readPage(t, readme)); n > most {
		t.Errorf("the README has %d bytes, want at most %d; facts belong in docs", n, most)
	}
}

// TestReadmeQuickStart runs the commands that the README shows after "$ ", in an empty folder, and compares
// the output.
func TestReadmeQuickStart(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh on this machine")
	}
	_, text, _ := strings.Cut(readPage(t, readme), "\n## Quick start\n")
	text, _, _ = strings.Cut(text, "\n## ")
	commands := runConsole(t, text)
	if commands < 4 {
		t.Errorf("the quick start has %d commands, want at least 4", commands)
	}
}

// TestLimitsRecipes runs the commands that the page about limits shows.
func TestLimitsRecipes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh on this machine")
	}
	if n := runConsole(t, readPage(t, "docs/limits.md")); n < 10 {
		t.Errorf("the page has %d commands, want at least 10", n)
	}
}

// TestDependenciesRecipes runs the commands that the page about dependencies shows.
func TestDependenciesRecipes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh on this machine")
	}
	if n := runConsole(t, readPage(t, "docs/dependencies.md")); n < 15 {
		t.Errorf("the page has %d commands, want at least 15", n)
	}
}

// runConsole runs the commands that the blocks "console" of a page show after "$ ", with further lines after
// "> ", in an empty folder, and compares the output. It returns how many there are.
func runConsole(t *testing.T, text string) (commands int) {
	t.Helper()
	folder := t.TempDir()
	var environment []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "JOBLEDGER_") {
			environment = append(environment, v)
		}
	}
	for i, block := range strings.Split(text, "```") {
		block, isConsole := strings.CutPrefix(block, "console\n")
		if i%2 == 0 || !isConsole {
			continue
		}
		for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
			line, want, _ := strings.Cut(part, "\n")
			for more := "> "; strings.HasPrefix(want, more); {
				next, rest, _ := strings.Cut(strings.TrimPrefix(want, more), "\n")
				line, want = line+"\n"+next, rest
			}
			commands++
			c := exec.Command("sh", "-c", line)
			c.Dir, c.Env = folder, append(environment, "TZ=UTC", "PWD="+folder)
			got, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", line, err, got)
			}
			if got, want := normalized(string(got)), normalized(want); got != want {
				t.Errorf("%s\ngot\n%s\nwant\n%s", line, got, want)
			}
		}
	}
	return commands
}

// varying lists what differs from run to run, and between machines.
var varying = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\b01[0-9A-Z]{24}\b`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d+ ?(\+00:00|\+0000 UTC)`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "CLOCK"},
	{regexp.MustCompile(`\b(\d+m)?\d+(\.\d+)?(µs|ms|s|m)\b`), "DURATION"},
	{regexp.MustCompile(`cli:[^ ;]+`), "ACTOR"},
	{regexp.MustCompile(`made the ledger \S+`), "made the ledger PATH"},
	{regexp.MustCompile(`\(pid \d+ on [^)]+\)`), "(PROCESS)"},
	// On a slow machine any command sends a first heartbeat, which counts as an event.
	{regexp.MustCompile(`\n[^\n]*heartbeat +→ running[^\n]*`), ""},
	{regexp.MustCompile(`\b\d+ events\b`), "N events"},
	{regexp.MustCompile(` +`), " "}, // the width of columns varies
}

func normalized(text string) string {
	for _, v := range varying {
		text = v.from.ReplaceAllString(text, v.to)
	}
	return strings.TrimSpace(text)
}

var (
	codeBlock = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?s)```.*?```")
	})
	codeSpan = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("`[^`\n]+`")
	})
	link = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\[[^][]*\]\(([^()\s]+)\)`)
	})
	heading = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^#+ (.+)$`)
	})
	noSlug = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	})
)

// anchors returns the names by which a link can reach the headings of a page.
func anchors(text string) (names []string) {
	for _, m := range heading().FindAllStringSubmatch(codeBlock().ReplaceAllString(text, ""), -1) {
		name := noSlug().ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

func TestDocsLinksResolve(t *testing.T) {
	for _, page := range pages(t) {
		text := codeSpan().ReplaceAllString(codeBlock().ReplaceAllString(readPage(t, page), ""), "`code`")
		for _, m := range link().FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, hasAnchor := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(path))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if hasAnchor && !slices.Contains(anchors(readPage(t, target)), anchor) {
				t.Errorf("%s links to %s: no such heading", page, m[1])
			}
		}
	}
}

// TestDocsTopics checks that each page has a first line that help can list, a name that no command has (help
// shows commands first), and a link in the README.
func TestDocsTopics(t *testing.T) {
	p := &program{&cli.Program{Docs: docs}}
	topics, err := p.Topics()
	if err != nil {
		t.Fatal(err)
	}
	text := readPage(t, readme)
	for _, topic := range topics {
		first, _, _ := strings.Cut(topic.Text, "\n")
		if !strings.HasPrefix(first, "# ") || topic.Summary == "" || len(topic.Summary) > 80 {
			t.Errorf("%s: first line %q, want \"# Title: summary\"", topic.Name, first)
		}
		if !strings.Contains(text, "["+topic.Name+"](cmd/jobledger/docs/"+topic.Name+".md) |") {
			t.Errorf("%s: not in the README's list of topics", topic.Name)
		}
		for _, v := range p.verbs() {
			if v.Name == topic.Name {
				t.Errorf("%s is also a command", topic.Name)
			}
		}
	}
	if len(topics) != 21 {
		t.Errorf("%d topics, want 21", len(topics))
	}
}

func TestDocsListEveryCommandAndExitCode(t *testing.T) {
	page := readPage(t, "docs/commands.md")
	for _, v := range (&program{&cli.Program{}}).verbs() {
		if !regexp.MustCompile("(?m)^\\| [a-z ]*\\|[^|]*`" + v.Name + "`[^|]*\\|").MatchString(page) {
			t.Errorf("docs/commands.md does not list %s", v.Name)
		}
	}
	_, table, _ := strings.Cut(page, "\n## Exit codes\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, m := range fault.ExitMeanings {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^\| ([0-9, ]+, )?%d[ ,]`, m.Code)).MatchString(table) {
			t.Errorf("docs/commands.md does not list exit code %d", m.Code)
		}
	}
}

// TestDocsListEveryFinding checks that docs/operations.md says of each check of verify what the program says
// on a page, and that each code is that of one check.
func TestDocsListEveryFinding(t *testing.T) {
	page := readPage(t, "docs/operations.md")
	rows := make(map[string]string)
	for _, m := range regexp.MustCompile("(?m)^\\| `(V[0-9]+)` \\| (.*) \\|$").FindAllStringSubmatch(page, -1) {
		text, _, _ := strings.Cut(m[2], "; see [")
		rows[m[1]], _, _ = strings.Cut(text, "; with `--since`")
	}
	codes := regexp.MustCompile(`"(V[0-9]+)"`).FindAllStringSubmatch(
		readPage(t, "../../projection/audit/finding.go"), -1)
	if len(codes) != len(audit.Checks) || len(rows) != len(audit.Checks) || len(codes) < 32 {
		t.Errorf("%d codes, %d checks, %d rows in docs/operations.md", len(codes), len(audit.Checks), len(rows))
	}
	for i, c := range audit.Checks {
		if want := fmt.Sprintf("V%02d", i+1); c.Code != want {
			t.Errorf("check %d has the code %s, want %s", i, c.Code, want)
		}
		if rows[c.Code] != c.Finds {
			t.Errorf("docs/operations.md says of %s %q, and the program %q", c.Code, rows[c.Code], c.Finds)
		}
	}
}

// TestDocsListEveryPackage checks that docs/architecture.md names each package of the module, by its path or
// its last element.
func TestDocsListEveryPackage(t *testing.T) {
	page := readPage(t, "docs/architecture.md")
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && path != "../.." {
			return filepath.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil || len(files) == 0 {
			return err
		}
		name, err := filepath.Rel("../..", path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		isShort := strings.Contains(name, "/internal/") && strings.Contains(page, "`"+entry.Name()+"`")
		if !strings.Contains(page, "`"+name+"`") && !isShort {
			t.Errorf("docs/architecture.md does not list %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocsFlagsExist checks every flag of this program that the pages mention.
func TestDocsFlagsExist(t *testing.T) {
	known := make(map[string]bool)
	add := func(flags []cli.Flag) {
		for _, f := range flags {
			for _, name := range f.Names() {
				known[name] = true
			}
		}
	}
	add(cli.GlobalFlags(""))
	for _, v := range (&program{&cli.Program{}}).verbs() {
		add(v.Flags)
		for old := range v.Renamed {
			delete(known, old) // pages use the current name
		}
	}
	flag := regexp.MustCompile(`(?:^|[\s\x60[])--([a-z][a-z-]*)`)
	others := []string{"help", "pwprompt", "owner", "encoding", "template", "schema", // of other programs
		"joblog", "results", "bar", "eta", "retries", "resume", "halt", "sshlogin",
		"stashed", "all-failed", "user", "retry-failed", "pipe", "colsep", "unix-socket", "filter"}
	for _, page := range pages(t) {
		for line := range strings.Lines(readPage(t, page)) {
			for _, m := range flag.FindAllStringSubmatch(line, -1) {
				if !known[m[1]] && !slices.Contains(others, m[1]) {
					t.Errorf("%s mentions --%s: no such flag\n%s", page, m[1], line)
				}
			}
		}
	}
}

// TestDocsNameWhatExists checks that every test and every Go name that the pages mention exists.
func TestDocsNameWhatExists(t *testing.T) {
	tests, names := declared(t)
	testName := regexp.MustCompile(`\bTest[A-Z]\w*…?`)
	goName := regexp.MustCompile(`^(event|ledger|projection|commands|worker)\.[A-Z]\w*(\.[A-Z]\w*)?$`)
	for _, page := range pages(t) {
		text := codeBlock().ReplaceAllString(readPage(t, page), "")
		for _, name := range testName.FindAllString(text, -1) {
			prefix, isPrefix := strings.CutSuffix(name, "…")
			if !slices.ContainsFunc(tests, func(test string) bool {
				return test == name || isPrefix && strings.HasPrefix(test, prefix)
			}) {
				t.Errorf("%s mentions %s: no such test", page, name)
			}
		}
		for _, span := range codeSpan().FindAllString(text, -1) {
			if name := strings.Trim(span, "`"); goName.MatchString(name) && !names[name] {
				t.Errorf("%s mentions %s: no such name", page, name)
			}
		}
	}
}

// declared returns the names of all tests, and of everything that a package declares: package.Name,
// package.Type.Method and package.Type.Field.
func declared(t *testing.T) (tests []string, names map[string]bool) {
	t.Helper()
	names = make(map[string]bool)
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := file.Name.Name
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := pkg + "." + d.Name.Name
				if d.Recv != nil {
					receiver := d.Recv.List[0].Type
					if star, ok := receiver.(*ast.StarExpr); ok {
						receiver = star.X
					}
					name = fmt.Sprintf("%s.%s.%s", pkg, receiver, d.Name.Name)
				} else if strings.HasSuffix(path, "_test.go") && strings.HasPrefix(d.Name.Name, "Test") {
					tests = append(tests, d.Name.Name)
				}
				names[name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					declaredIn(pkg, spec, names)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests, names
}

func declaredIn(pkg string, spec ast.Spec, names map[string]bool) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names[pkg+"."+name.Name] = true
		}
	case *ast.TypeSpec:
		names[pkg+"."+s.Name.Name] = true
		structure, ok := s.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, field := range structure.Fields.List {
			for _, name := range field.Names {
				names[pkg+"."+s.Name.Name+"."+name.Name] = true
			}
		}
	}
}
