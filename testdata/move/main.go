// Move gives the module, and the modules within it, another path, which is that of the place where others get
// it. Only go.mod files and imports have the path, so that this is all there is to do before it is published.
//
//	go run ./testdata/move -to example.com/jobs/jobledger                  here
//	go run ./testdata/move -to … -dir ../copy -version v0.1.0 -proxy DIR   a copy; and as what go get reads
//
// With -version, the modules within it require that version of the module; there they have its source by a
// replace directive, which the programs that import them ignore. With -proxy, the module of that version is
// written into DIR as a module proxy has it, for GOPROXY=file://DIR: it is what will be published. So are the
// modules within it that programs import, which are those outside of testdata. The tags of all are printed. A
// version that DIR has already with other bytes is refused.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	to := flag.String("to", "", "the new path of the module")
	dir := flag.String("dir", ".", "the folder of the module")
	version := flag.String("version", "", "of the module, that those within it require; \"\": as they do now")
	proxy := flag.String("proxy", "", "a folder that is to have the module as a proxy has it; \"\": none")
	flag.Parse()
	if err := move(*dir, *to, *version, *proxy); err != nil {
		fmt.Fprintln(os.Stderr, "move:", err)
		os.Exit(1)
	}
}

func move(dir, to, version, proxy string) error {
	if err := module.CheckPath(to); err != nil {
		return fmt.Errorf("-to: %w", err)
	}
	if proxy != "" && version == "" {
		return errors.New("-proxy needs the -version that it is to have")
	}
	if version != "" {
		if err := module.Check(to, version); err != nil {
			return fmt.Errorf("-version: %w", err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	m := mover{from: modfile.ModulePath(text), to: to, version: version}
	if err := filepath.WalkDir(dir, m.visit); err != nil {
		return err
	}
	fmt.Printf("%s is now %s: %d files changed\n", m.from, to, m.changed)
	if proxy == "" {
		return nil
	}
	return m.publishAll(dir, proxy)
}

// publishAll writes the module and those within it that programs import, and prints the tags to make.
func (m *mover) publishAll(dir, proxy string) error {
	return filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.Name() != "go.mod":
			return nil
		}
		folder := filepath.Dir(file)
		within, err := filepath.Rel(dir, folder)
		if err != nil {
			return err
		}
		name := path.Join(m.to, filepath.ToSlash(within))
		if err := publish(folder, module.Version{Path: name, Version: m.version}, proxy); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("the tag of %s: %s\n", name, strings.TrimPrefix(name+"/"+m.version, m.to+"/"))
		return nil
	})
}

// mover changes one file after the other.
type mover struct {
	from, to, version string
	changed           int
}

func (m *mover) visit(file string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name := entry.Name()
	if entry.IsDir() {
		if name == ".git" {
			return filepath.SkipDir
		}
		return nil
	}
	var change func(file string, text []byte) ([]byte, error)
	switch {
	case name == "go.mod":
		change = m.goMod
	case strings.HasSuffix(name, ".go"):
		change = m.source
	default:
		return nil
	}
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	after, err := change(file, before)
	if err != nil || slices.Equal(before, after) {
		return err
	}
	m.changed++
	info, err := entry.Info()
	if err != nil {
		return err
	}
	return os.WriteFile(file, after, info.Mode().Perm())
}

// moved returns the path that a package or module has now; ok is false if it is not one of ours.
func (m *mover) moved(path string) (now string, ok bool) {
	rest, ok := strings.CutPrefix(path, m.from)
	if !ok || rest != "" && rest[0] != '/' {
		return path, false
	}
	return m.to + rest, true
}

// source changes the imports of a file.
func (m *mover) source(file string, text []byte) ([]byte, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	changed := false
	for _, spec := range slices.Backward(parsed.Imports) { // from the end, so that the offsets before it hold
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if now, ok := m.moved(path); ok {
			at, end := files.Position(spec.Path.Pos()).Offset, files.Position(spec.Path.End()).Offset
			text = slices.Concat(text[:at], []byte(strconv.Quote(now)), text[end:])
			changed = true
		}
	}
	if !changed {
		return text, nil
	}
	return format.Source(text) // the order of imports may be another one
}

// goMod changes the module that a go.mod declares, and those of ours that it requires and replaces.
func (m *mover) goMod(file string, text []byte) ([]byte, error) {
	mod, err := modfile.Parse(file, text, nil)
	if err != nil {
		return nil, err
	}
	if now, ok := m.moved(mod.Module.Mod.Path); ok {
		if err := mod.AddModuleStmt(now); err != nil {
			return nil, err
		}
	}
	for _, r := range slices.Clone(mod.Require) {
		if now, ok := m.moved(r.Mod.Path); ok {
			version := r.Mod.Version
			if m.version != "" {
				version = m.version
			}
			if err := errors.Join(mod.DropRequire(r.Mod.Path), mod.AddRequire(now, version)); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range slices.Clone(mod.Replace) {
		if now, ok := m.moved(r.Old.Path); ok {
			old, to := r.Old, r.New // DropReplace empties *r
			err := errors.Join(mod.DropReplace(old.Path, old.Version),
				mod.AddReplace(now, old.Version, to.Path, to.Version))
			if err != nil {
				return nil, err
			}
		}
	}
	mod.Cleanup()
	return mod.Format()
}

// publish writes the files that a proxy has of a version. Modules within dir are not part of it.
func publish(dir string, m module.Version, proxy string) (err error) {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	folder := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	archive := filepath.Join(folder, m.Version+".zip")
	before, err := os.ReadFile(archive)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var now bytes.Buffer
	if err := zip.CreateFromDir(&now, m, dir); err != nil {
		return err
	}
	if before != nil {
		if !bytes.Equal(before, now.Bytes()) {
			return fmt.Errorf("%s is there already with other files: a version stays as it is", m.Version)
		}
		return nil
	}
	versions, err := os.ReadFile(filepath.Join(folder, "list"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	info := fmt.Sprintf("{\"Version\":%q,\"Time\":%q}\n", m.Version, time.Now().UTC().Format(time.RFC3339))
	for name, text := range map[string]string{"list": string(versions) + m.Version + "\n", m.Version + ".info": info,
		m.Version + ".mod": string(mod)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(archive, now.Bytes(), 0o600)
}
