package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // packagers that nfpm.Get knows
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// installed has the files of a package next to those of an archive, and its scripts.
//
//go:embed files
var installed embed.FS

// packages writes the .deb and the .rpm for t.
func (r *release) packages(t target, program string) error {
	for _, format := range []string{"deb", "rpm"} {
		if err := r.pack(t, program, format); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

func (r *release) pack(t target, program, format string) (err error) {
	contents, err := r.contents(t, program, format)
	if err != nil {
		return err
	}
	script := func(name string) string { return filepath.Join(r.work, "scripts", name) }
	if err := r.stageScripts(); err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "jobledger", Arch: t.arch, Platform: "linux", Version: r.version, VersionSchema: "semver",
		Section: "utils", Priority: "optional", Maintainer: "The jobledger authors", License: "MIT", MTime: r.time,
		Description: "job queue with a permanent audit trail\n" +
			"Runs commands as background jobs, and says after an incident which worker owned\nwhich job, and when. " +
			"The ledger is an SQLite file, or in PostgreSQL.",
		Overridables: nfpm.Overridables{Contents: contents, Umask: 0o022,
			Scripts: nfpm.Scripts{PostInstall: script("postinst"), PreRemove: script("prerm"),
				PostRemove: script("postrm")},
			RPM: nfpm.RPM{BuildHost: "localhost", Summary: "job queue with a permanent audit trail"},
			Deb: nfpm.Deb{Compression: "gzip"},
			// The scripts use what both distributions have in this package.
			Depends: []string{"systemd"},
		},
	})
	if format == "rpm" { // there is no purge, and its scripts get how many versions are left
		info.Scripts = nfpm.Scripts{PostInstall: script("postinst"), PostRemove: script("postrm.rpm")}
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	return errors.Join(packager.Package(info, out), out.Close())
}

// contents returns where the files of an archive, and those of installed, are in a package.
func (r *release) contents(t target, program, format string) (list files.Contents, err error) {
	zsh := "/usr/share/zsh/vendor-completions/_jobledger"
	if format == "rpm" {
		zsh = "/usr/share/zsh/site-functions/_jobledger"
	}
	places := map[string]string{
		"LICENSE":                    "/usr/share/doc/jobledger/copyright",
		"README.md":                  "/usr/share/doc/jobledger/README.md",
		"THIRD-PARTY-LICENSES.txt":   "/usr/share/doc/jobledger/THIRD-PARTY-LICENSES.txt.gz",
		"man/jobledger.1":            "/usr/share/man/man1/jobledger.1.gz",
		"completions/jobledger.bash": "/usr/share/bash-completion/completions/jobledger",
		"completions/_jobledger":     zsh,
		"completions/jobledger.fish": "/usr/share/fish/vendor_completions.d/jobledger.fish",
	}
	folder := filepath.Join(r.work, "stage", t.arch, format)
	add := func(at string, text []byte, mode os.FileMode) error {
		staged := filepath.Join(folder, filepath.FromSlash(at))
		if err := os.MkdirAll(filepath.Dir(staged), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(staged, text, 0o600); err != nil {
			return err
		}
		list = append(list, &files.Content{Source: staged, Destination: at,
			FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time, Owner: "root", Group: "root"}})
		return nil
	}
	text, err := os.ReadFile(program)
	if err == nil {
		err = add("/usr/bin/jobledger", text, 0o755)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range r.shared {
		at, ok := places[f.name]
		if !ok {
			continue
		}
		if strings.HasSuffix(at, ".gz") {
			f.text = zipped(f.text)
		}
		if err := add(at, f.text, 0o644); err != nil {
			return nil, err
		}
	}
	root := "files/root"
	err = fs.WalkDir(installed, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := installed.ReadFile(name)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(string(text), "#!") {
			mode = 0o755
		}
		return add(strings.TrimPrefix(name, root), text, mode)
	})
	return list, err
}

// stageScripts writes the scripts of packages to where nfpm reads them.
func (r *release) stageScripts() error {
	folder := filepath.Join(r.work, "scripts")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	entries, err := installed.ReadDir("files/scripts")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := installed.ReadFile("files/scripts/" + e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, e.Name()), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
