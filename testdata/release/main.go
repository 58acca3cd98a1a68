// Release makes the files of a release of jobledger, offline:
//
//	cd testdata/release && go run . -version v0.1.0 -out ../../dist
//
// There is an archive for each system, with the program, its manual page, completions and licences; for Linux
// also a .deb and a .rpm, with units for systemd, and an OCI image; a list of all modules (CycloneDX); and
// SHA256SUMS. With -key, SHA256SUMS is signed by an Ed25519 key, as "openssl genpkey -algorithm ed25519" makes
// one; it is checked with
//
//	openssl pkeyutl -verify -pubin -inkey release.pub -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig
//
// Equal input gives equal bytes: the time in all files is that of the commit, and nothing of the machine is
// in them. So somebody else can make the release again and compare, with the release of Go that go.mod names
// as its toolchain. It is a module of its own, so that jobledger does not depend on what makes
// packages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// release is what all files of it have in common.
type release struct {
	root     string // the folder of the module
	out      string // where the files go
	work     string // a temporary folder
	version  string // as "v1.2.3"
	revision string // of the commit; "": not known
	time     time.Time
	targets  []target
	shared   []file // in each archive
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	r := &release{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.version, "version", "", "of the release: v1.2.3; default: the tag of the commit")
	flags.StringVar(&r.out, "out", "dist", "an empty `folder` for the files, or one that does not exist")
	flags.StringVar(&r.root, "root", "../..", "the `folder` of the module")
	flags.StringVar(&r.revision, "revision", "", "of the commit; default: that of git")
	at := flags.String("time", "", "of the release, as in RFC 3339; default: that of the commit")
	only := flags.String("only", "", "systems to build for, as linux/amd64,windows/amd64; default: all")
	anyGo := flags.Bool("any-go", false, "with another release of Go than go.mod names, so with other bytes")
	key := flags.String("key", "", "the `file` of an Ed25519 key in PEM that signs SHA256SUMS; default: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err := r.describe(ctx, *at); err != nil {
		return err
	}
	if r.targets, err = chooseTargets(*only); err != nil {
		return err
	}
	sign, err := readKey(*key)
	if err != nil {
		return err
	}
	if err := r.checkGo(); err != nil && !*anyGo {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if left, err := os.ReadDir(r.out); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty", r.out))
	}
	if r.work, err = os.MkdirTemp("", "release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	return r.make(ctx, sign)
}

// describe fills in what was not given from git, and checks all of it.
func (r *release) describe(ctx context.Context, at string) error {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", r.root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	if at == "" || r.version == "" {
		changed, err := git("status", "--porcelain")
		if err != nil {
			return fmt.Errorf("git does not say what is released (give -version and -time): %w", err)
		}
		if changed != "" {
			return fmt.Errorf("there are changes that are not committed:\n%s", changed)
		}
	}
	if r.version == "" {
		var err error
		if r.version, err = git("describe", "--exact-match", "--match", "v*"); err != nil {
			return fmt.Errorf("the commit has no tag; give -version: %w", err)
		}
	}
	if !semver.IsValid(r.version) || semver.Canonical(r.version) != r.version {
		return fmt.Errorf("-version %q: it is v1.2.3, or v1.2.3-rc.1", r.version)
	}
	if at == "" {
		seconds, err := git("log", "-1", "--format=%ct")
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil {
			return err
		}
		r.time = time.Unix(n, 0).UTC()
		if r.revision == "" {
			if r.revision, err = git("rev-parse", "HEAD"); err != nil {
				return err
			}
		}
	} else {
		parsed, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return fmt.Errorf("-time: %w", err)
		}
		r.time = parsed.UTC().Truncate(time.Second)
	}
	var err error
	if r.root, err = filepath.Abs(r.root); err == nil {
		r.out, err = filepath.Abs(r.out)
	}
	return err
}

// checkGo returns an error where this program was not built by the release of Go that go.mod names. Its
// toolchain builds the programs, and its packages compress the archives.
func (r *release) checkGo() error {
	text, err := os.ReadFile(filepath.Join(r.root, "go.mod"))
	if err != nil {
		return err
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return err
	}
	if mod.Toolchain == nil {
		return errors.New("go.mod names no toolchain")
	}
	if want := mod.Toolchain.Name; runtime.Version() != want {
		return fmt.Errorf("this is %s, and a release is made with %s (GOTOOLCHAIN=%s go run ., or -any-go)",
			runtime.Version(), want, want)
	}
	return nil
}

// make makes all files.
func (r *release) make(ctx context.Context, sign signer) error {
	programs := make(map[target]string)
	for _, t := range r.targets {
		program, err := r.build(ctx, t)
		if err != nil {
			return err
		}
		programs[t] = program
		fmt.Println("built", t)
	}
	modules, err := r.modulesOf(ctx, programs)
	if err != nil {
		return err
	}
	if r.shared, err = r.texts(ctx, modules); err != nil {
		return err
	}
	for _, t := range r.targets {
		if err := r.archive(t, programs[t]); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		if t.system == "linux" {
			if err := r.packages(t, programs[t]); err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
		}
	}
	if err := r.image(programs); err != nil {
		return err
	}
	if err := r.bill(modules); err != nil {
		return err
	}
	return r.sums(sign)
}

// name returns the name of a file of the release.
func (r *release) name(rest string) string { return "jobledger_" + r.version[1:] + rest }

// target is a system to build for.
type target struct{ system, arch string }

func (t target) String() string { return t.system + "/" + t.arch }

var allTargets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"linux", "riscv64"}, {"darwin", "amd64"},
	{"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}, {"freebsd", "amd64"}, {"freebsd", "arm64"}}

func chooseTargets(only string) (chosen []target, err error) {
	if only == "" {
		return allTargets, nil
	}
	for text := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(allTargets, func(t target) bool { return t.String() == text })
		if i < 0 {
			return nil, fmt.Errorf("-only %q: the systems are %v", text, allTargets)
		}
		chosen = append(chosen, allTargets[i])
	}
	return chosen, nil
}
