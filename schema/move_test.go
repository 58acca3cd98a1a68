package schema_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"jobledger/ledger/ledgertest"
)

// elsewhere is a path at which the module is published in a test.
const elsewhere = "example.com/jobs/jobledger"

// TestMoveModule moves a copy of the module to another path, as on the day when it is published. Then nothing
// has the old one, and a part of it builds. The long tier also publishes it on a module proxy of files, gets
// it from there into a program of its own with "go get", and runs that.
func TestMoveModule(t *testing.T) {
	t.Parallel()
	copied, proxy := filepath.Join(t.TempDir(), "copy"), t.TempDir()
	copyTree(t, "..", copied)
	moved := run(t, "..", nil, "go", "run", "./testdata/move", "-to", elsewhere, "-dir", copied,
		"-version", "v0.1.0", "-proxy", proxy)
	if out := run(t, copied, nil, "gofmt", "-l", "."); out != "" {
		t.Errorf("not formatted: %s", out)
	}
	sources, modules := 0, 0
	walk(t, copied, func(file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		old := `"jobledger/` // assembled, so that this file is not a finding
		switch {
		case strings.HasSuffix(file, ".go") && strings.Contains(string(text), "\n\t"+old):
			t.Errorf("%s imports by the old path", file)
		case filepath.Base(file) == "go.mod":
			modules++
			if mod, err := modfile.Parse(file, text, nil); err != nil {
				t.Errorf("%s: %v", file, err)
			} else {
				for _, r := range mod.Replace {
					if _, err := os.Stat(filepath.Join(filepath.Dir(file), r.New.Path, "go.mod")); err != nil {
						t.Errorf("%s replaces %s by %q: %v", file, r.Old.Path, r.New.Path, err)
					}
				}
			}
			if n := strings.Count(string(text), elsewhere); n == 0 || n != strings.Count(string(text), "jobledger") {
				t.Errorf("%s has the old path:\n%s", file, text)
			}
			if strings.Contains(string(text), "\nreplace "+elsewhere) &&
				!strings.Contains(string(text), elsewhere+" v0.1.0\n") {
				t.Errorf("%s does not require the version:\n%s", file, text)
			}
		case strings.HasSuffix(file, ".go"):
			sources++
		}
	})
	if sources < 500 || modules < 4 {
		t.Errorf("%d sources, %d modules", sources, modules)
	}
	for module, name := range map[string]string{"": "v0.1.0.zip", "/commands/workerotel": "v0.1.0.zip"} {
		if _, err := os.Stat(filepath.Join(proxy, filepath.FromSlash(elsewhere+module), "@v", name)); err != nil {
			t.Errorf("the proxy: %v", err)
		}
	}
	if !strings.Contains(moved, "the tag of "+elsewhere+"/commands/workerotel: commands/workerotel/v0.1.0\n") {
		t.Errorf("the tags: %s", moved)
	}
	out := run(t, copied, nil, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"./ledger/event", "./schema", "./commands/cron")
	if !strings.Contains(out, elsewhere+"/ledger/event\n") || strings.Contains(out, "\njobledger/") {
		t.Errorf("the packages are:\n%s", out)
	}
	if ledgertest.All() {
		run(t, copied, nil, "go", "build", "./ledger/event", "./schema", "./commands/cron")
	}
	if ledgertest.Long() {
		getFromProxy(t, copied, proxy)
	}
}

// getFromProxy builds the program of the moved copy, and a program that gets the module from the proxy. All
// other modules come from the cache of this machine.
func getFromProxy(t *testing.T, copied, proxy string) {
	t.Helper()
	// The packages of other modules are compiled once for both, since -trimpath leaves out where they are.
	static := []string{"CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false"}
	program := filepath.Join(t.TempDir(), "jobledger")
	run(t, copied, static, "go", "build", "-o", program, "./cmd/jobledger")
	db := filepath.Join(t.TempDir(), "jobs.db")
	run(t, copied, nil, program, "--db", db, "enqueue", "-q", "mail", "-")

	cache := strings.TrimSpace(run(t, copied, nil, "go", "env", "GOMODCACHE"))
	user := t.TempDir()
	if err := os.WriteFile(filepath.Join(user, "main.go"), []byte(userProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	modules := t.TempDir()
	downloads := filepath.ToSlash(filepath.Join(cache, "cache", "download"))
	offline := append(static, "GOMODCACHE="+modules, "GOSUMDB=off", "GONOSUMDB=*", "GOPRIVATE=", "GONOPROXY=",
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+downloads)
	t.Cleanup(func() { run(t, user, offline, "go", "clean", "-modcache") }) // its files are read-only
	run(t, user, offline, "go", "mod", "init", "example.org/shop")
	run(t, user, offline, "go", "get", elsewhere+"@v0.1.0")
	run(t, user, append(offline, "GOFLAGS=-trimpath -buildvcs=false -mod=mod"), "go", "build", "-o", "shop", ".")
	if out := run(t, user, nil, "./shop", db); out != "mail, then ship: 17\n" {
		t.Errorf("the program printed %q", out)
	}
	// OpenTelemetry is a module of its own, with a version of its own.
	withSpans := "package main\n\nimport _ \"" + elsewhere + "/commands/workerotel\"\n"
	if err := os.WriteFile(filepath.Join(user, "spans.go"), []byte(withSpans), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, user, offline, "go", "get", elsewhere+"/commands/workerotel@v0.1.0")
	run(t, user, append(offline, "GOFLAGS=-trimpath -buildvcs=false -mod=mod"), "go", "build", "-o", "shop", ".")
	run(t, copied, nil, program, "--db", db, "verify")
}

// userProgram uses what a program uses: enqueue, a schedule, typed handlers, the outbox.
const userProgram = `package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	_ "modernc.org/sqlite"

	"` + elsewhere + `/commands"
	"` + elsewhere + `/commands/outbox"
	"` + elsewhere + `/commands/schedule"
	"` + elsewhere + `/commands/worker"
	"` + elsewhere + `/ledger"
)

type Order struct{ Number int }

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, jobs string) error {
	store, err := ledger.Open(ctx, jobs)
	if err != nil {
		return err
	}
	defer store.Close()
	service := &commands.Service{Store: store}
	_, err = schedule.Set(ctx, service, "shop", schedule.Spec{Name: "n", Queue: "n", Cron: "@yearly"})
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:shop.db?_pragma=journal_mode(wal)")
	if err != nil {
		return err
	}
	if err := outbox.Migrate(ctx, db); err != nil {
		return err
	}
	_, err = outbox.Enqueue(ctx, db, commands.Enqueue{Queue: "ship", Payload: []byte("{\"Number\":17}")})
	if err != nil {
		return err
	}
	if _, err := (&outbox.Relay{Service: service, From: db}).Drain(ctx); err != nil {
		return err
	}
	var mux worker.Mux
	worker.Handle(&mux, "mail", func(context.Context, worker.Job[[]byte]) (any, error) {
		fmt.Print("mail, then ")
		return nil, nil
	})
	worker.Handle(&mux, "ship", func(_ context.Context, job worker.Job[Order]) (any, error) {
		fmt.Println("ship:", job.Args.Number)
		return nil, nil
	})
	w := &worker.Worker{Service: service, Handler: &mux, Drain: true, SweepEvery: -1}
	_, err = w.Run(ctx)
	return err
}
`

// run runs a program and returns what it printed. The test ends if it fails.
func run(t *testing.T, dir string, environment []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	if t.Context().Err() != nil { // in a cleanup
		cmd = exec.Command(name, args...)
	}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// walk calls fn for each file, except those of git.
func walk(t *testing.T, root string, fn func(file string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case entry.Type().IsRegular() && entry.Name() != ".git": // of a work tree, it is a file
			fn(file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// copyTree copies the files of the module.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	walk(t, from, func(file string) {
		name, err := filepath.Rel(from, file)
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(target, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
