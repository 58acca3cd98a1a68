package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// environment is that of all commands of Go: what could differ between two machines is set.
func environment(t target) []string {
	env := []string{"CGO_ENABLED=0", "GOOS=" + t.system, "GOARCH=" + t.arch, "GOFLAGS=-mod=readonly",
		"GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GORISCV64=rva20u64", "GOTOOLCHAIN=local",
		"GO111MODULE=on"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY",
		"GOROOT", "GONOSUMDB", "GOSUMDB", "SystemRoot", "LOCALAPPDATA", "USERPROFILE", "TEMP"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// build builds the program for t, and returns the file.
func (r *release) build(ctx context.Context, t target) (program string, err error) {
	text, err := os.ReadFile(filepath.Join(r.root, "go.mod"))
	if err != nil {
		return "", err
	}
	into := modfile.ModulePath(text) + "/cmd/jobledger/internal/buildinfo."
	stamp := "-s -w -buildid= -X " + into + "release=" + r.version + " -X " + into + "time=" +
		r.time.Format(time.RFC3339)
	if r.revision != "" {
		stamp += " -X " + into + "revision=" + r.revision
	}
	program = filepath.Join(r.work, t.system+"-"+t.arch, "jobledger")
	if t.system == "windows" {
		program += ".exe"
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp, "-o",
		program, "./cmd/jobledger")
	cmd.Dir, cmd.Env = r.root, environment(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build for %s: %w\n%s", t, err, out)
	}
	return program, nil
}

// modulesOf returns the modules that are in any of the programs, and where their source is.
func (r *release) modulesOf(ctx context.Context, programs map[target]string) (modules []module, err error) {
	byPath := make(map[string]module)
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, err
		}
		for _, d := range info.Deps {
			if d.Replace != nil {
				return nil, fmt.Errorf("%s is replaced: a release has what its go.mod says", d.Path)
			}
			byPath[d.Path] = module{path: d.Path, version: d.Version, sum: d.Sum}
		}
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	cmd.Dir, cmd.Env = r.root, environment(target{runtime.GOOS, runtime.GOARCH})
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m all: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if m, ok := byPath[path]; ok {
			m.dir = dir
			byPath[path] = m
		}
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	modules = append(modules, module{path: "std", version: runtime.Version(),
		dir: strings.TrimSpace(string(goroot))})
	for _, m := range byPath {
		modules = append(modules, m)
	}
	return licensed(modules)
}

// texts returns the files of an archive that are the same for each system: the licences, and what the program
// prints about itself.
func (r *release) texts(ctx context.Context, modules []module) (files []file, err error) {
	host := target{runtime.GOOS, runtime.GOARCH}
	program, err := r.build(ctx, host) // is there already, mostly
	if err != nil {
		return nil, err
	}
	for name, args := range map[string]string{"man/jobledger.1": "man",
		"completions/jobledger.bash": "completion bash", "completions/_jobledger": "completion zsh",
		"completions/jobledger.fish": "completion fish",
		"completions/jobledger.ps1":  "completion powershell"} {
		cmd := exec.CommandContext(ctx, program, strings.Fields(args)...)
		cmd.Env = []string{"HOME=" + r.work, "LC_ALL=C.UTF-8", "TZ=UTC"}
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("jobledger %s: %w", args, err)
		}
		files = append(files, file{name: name, text: text})
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		if name == "README.md" {
			text = withoutLinks(text)
		}
		files = append(files, file{name: name, text: text})
	}
	third, err := thirdParty(modules)
	return append(files, file{name: "THIRD-PARTY-LICENSES.txt", text: third}), err
}

var link = regexp.MustCompile(`!?\[([^\]]*)\]\(([^)]*)\)`)

// withoutLinks returns the README without links to files that archives and packages do not have. The pages of
// the documentation are in the program.
func withoutLinks(readme []byte) []byte {
	return link.ReplaceAllFunc(readme, func(all []byte) []byte {
		parts := link.FindSubmatch(all)
		text, to := string(parts[1]), string(parts[2])
		page, isPage := strings.CutPrefix(to, "cmd/jobledger/docs/")
		page, _, _ = strings.Cut(page, "#")
		page, isText := strings.CutSuffix(page, ".md")
		switch {
		case strings.HasPrefix(to, "https://"), to == "LICENSE":
			return all
		case all[0] == '!':
			return nil
		case isPage && isText:
			return fmt.Appendf(nil, "%s (`jobledger help %s`)", text, page)
		}
		return []byte(text)
	})
}
