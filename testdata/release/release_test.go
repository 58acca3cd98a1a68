package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var long = flag.Bool("long", false, "all systems, not only this one")

// largest is how many bytes a file of a release may have.
const largest = 25 << 20

// made makes a release of the module in root.
func made(t *testing.T, root, version string, args ...string) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "dist")
	args = append([]string{"-root", root, "-version", version, "-time", "2026-11-24T22:00:00+02:00",
		"-revision", "0123456789abcdef", "-any-go", "-out", out}, args...)
	if err := run(context.Background(), args); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReleaseIsReproducible makes a release twice, the second time of a copy in another folder, and compares
// all bytes. Then it looks into what was made.
func TestReleaseIsReproducible(t *testing.T) {
	only := "linux/" + runtime.GOARCH
	if *long {
		only = ""
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(key, text, 0o600); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(copied, sources{os.DirFS("../..")}); err != nil {
		t.Fatal(err)
	}
	first := made(t, "../..", "v0.1.0", "-only", only, "-key", key)
	second := made(t, copied, "v0.1.0", "-only", only, "-key", key)
	names := list(t, first)
	if other := list(t, second); !slices.Equal(names, other) {
		t.Fatalf("the second time there are %q, the first time %q", other, names)
	}
	want := 7 // archive, .deb, .rpm, image, bill, sums, signature
	if *long {
		want = len(allTargets) + 3*2 + 4
	}
	if len(names) != want {
		t.Errorf("%d files: %q", len(names), names)
	}
	for _, name := range names {
		a, b := read(t, first, name), read(t, second, name)
		if !bytes.Equal(a, b) {
			t.Errorf("%s has other bytes the second time", name)
		}
		if len(a) > largest && !strings.HasSuffix(name, "_oci.tar") { // which has several programs
			t.Errorf("%s has %d bytes", name, len(a))
		}
	}

	sums := read(t, first, "SHA256SUMS")
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256(read(t, first, name))); got != sum {
			t.Errorf("SHA256SUMS is wrong for %s", name)
		}
	}
	if n := bytes.Count(sums, []byte("\n")); n != len(names)-2 {
		t.Errorf("SHA256SUMS has %d files of %q", n, names)
	}
	if !ed25519.Verify(public, sums, read(t, first, "SHA256SUMS.sig")) {
		t.Error("the signature is wrong")
	}
	var bill struct {
		Components []struct {
			Name     string
			Licenses []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(read(t, first, "jobledger_0.1.0_sbom.cdx.json"), &bill); err != nil {
		t.Fatal(err)
	}
	for _, c := range bill.Components {
		if len(c.Licenses) != 1 || c.Licenses[0].License.ID == "" {
			t.Errorf("the bill names no licence of %s", c.Name)
		}
	}
	if len(bill.Components) < 15 {
		t.Errorf("the bill has %d modules", len(bill.Components))
	}
	archives := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".zip") {
			archives++
			checkArchive(t, filepath.Join(first, name))
		}
	}
	if want = len(strings.Split(only, ",")); *long {
		want = len(allTargets)
	}
	if archives != want {
		t.Errorf("%d archives, want %d", archives, want)
	}
	if runtime.GOOS == "linux" {
		folder := unpack(t, filepath.Join(first, "jobledger_0.1.0_linux_"+runtime.GOARCH+".tar.gz"))
		out := command(t, filepath.Join(folder, "jobledger"), "version")
		if !strings.HasPrefix(out, "jobledger v0.1.0 0123456789ab of 2026-11-24T20:00:00Z, go") {
			t.Errorf("version: %s", out)
		}
	}
	t.Run("image", func(t *testing.T) { checkImage(t, filepath.Join(first, "jobledger_0.1.0_oci.tar")) })
	t.Run("deb", func(t *testing.T) { installDeb(t, first) })
}

// checkArchive looks into the archive of one system: its program is of that system, and the licence of each
// module that is in this program is there.
func checkArchive(t *testing.T, archive string) {
	t.Helper()
	folder := unpack(t, archive)
	if files := list(t, folder); len(files) != 9 {
		t.Errorf("%s has %q", archive, files)
	}
	program := "jobledger"
	if strings.Contains(archive, "_windows_") {
		program += ".exe"
	}
	info, err := buildinfo.ReadFile(filepath.Join(folder, program))
	if err != nil {
		t.Fatal(err)
	}
	setting := make(map[string]string)
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	system := setting["GOOS"] + "_" + setting["GOARCH"]
	if !strings.Contains(archive, "_"+system+".") || setting["CGO_ENABLED"] != "0" {
		t.Errorf("the program of %s is for %s, cgo %s", archive, system, setting["CGO_ENABLED"])
	}
	third := string(read(t, folder, "THIRD-PARTY-LICENSES.txt"))
	for _, d := range info.Deps {
		if !strings.Contains(third, "\n"+d.Path+" "+d.Version+": ") {
			t.Errorf("%s has no licence of %s %s", archive, d.Path, d.Version)
		}
	}
	if len(info.Deps) < 15 || !strings.Contains(third, "\nstd go") {
		t.Errorf("the program of %s has %d modules", archive, len(info.Deps))
	}
}

// installDeb installs the package of first into a folder, works there as the unit would, upgrades, removes
// and purges it. The ledger stays.
func installDeb(t *testing.T, first string) {
	for _, name := range []string{"dpkg", "systemd-sysusers", "systemd-tmpfiles", "setpriv"} {
		tool(t, name)
	}
	if os.Getuid() != 0 {
		t.Skip("only root may install a package") // and give files to the user of its units
	}
	only := "linux/" + runtime.GOARCH
	root := t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { // the user of the units must get there
		t.Fatal(err)
	}
	for _, folder := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info", "etc", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	status := "Package: systemd\nStatus: install ok installed\nVersion: 252\nArchitecture: " + runtime.GOARCH +
		"\nMaintainer: none\nDescription: stands in for the real one\n\n"
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), []byte(status), 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) string {
		t.Helper()
		return command(t, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--log=/dev/null",
			"--force-architecture"}, args...)...)
	}
	dpkg("-i", filepath.Join(first, "jobledger_0.1.0_"+runtime.GOARCH+".deb"))

	state := filepath.Join(root, "var/lib/jobledger")
	info, err := os.Stat(state)
	if err != nil || info.Mode() != fs.ModeDir|fs.ModeSetgid|0o770 {
		t.Fatalf("/var/lib/jobledger is %v, %v", info.Mode(), err)
	}
	if passwd := string(read(t, root, "etc/passwd")); !strings.Contains(passwd, "jobledger:") {
		t.Errorf("/etc/passwd is %s", passwd)
	}
	owner := strings.Fields(command(t, "stat", "-c", "%u %g", state))
	program := filepath.Join(root, "usr/bin/jobledger")
	as := func(user string, args ...string) string { // as a process of this user and of the ledger's group
		t.Helper()
		return command(t, "setpriv", append([]string{"--reuid", user, "--regid", owner[1], "--clear-groups", "--",
			"env", "JOBLEDGER_DB=" + filepath.Join(state, "jobs.db")}, args...)...)
	}
	// prepare names the program by its place, which here is below root.
	prepare := string(read(t, root, "usr/lib/jobledger/prepare"))
	prepare = strings.ReplaceAll(prepare, "/usr/bin/jobledger", program)
	as(owner[0], "sh", "-c", prepare)
	as("4711", program, "enqueue", "-q", "mail", "--key", "k", "hello")
	out := as(owner[0], program, "work", "-q", "mail", "--drain", "--", "cat")
	if !strings.Contains(out, "hello") {
		t.Errorf("the worker printed %q", out)
	}
	as(owner[0], "sh", "-c", prepare) // as at each start

	next := made(t, "../..", "v0.1.1", "-only", only)
	dpkg("-i", filepath.Join(next, "jobledger_0.1.1_"+runtime.GOARCH+".deb"))
	if out := command(t, program, "version"); !strings.HasPrefix(out, "jobledger v0.1.1 ") {
		t.Errorf("after the upgrade: %s", out)
	}
	as("4711", program, "verify")
	dpkg("--remove", "jobledger")
	if _, err := os.Stat(program); !os.IsNotExist(err) {
		t.Errorf("the program is left: %v", err)
	}
	out = dpkg("--purge", "jobledger")
	if _, err := os.Stat(filepath.Join(state, "jobs.db")); err != nil ||
		!strings.Contains(out, "/var/lib/jobledger is left") {
		t.Errorf("after the purge: %v; it said %s", err, out)
	}
	var left []string
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if strings.Contains(entry.Name(), "jobledger") && !strings.HasPrefix(name, state) {
			left = append(left, name)
		}
		return err
	})
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// checkImage follows an image from its index to its files, and runs its program as it says.
func checkImage(t *testing.T, archive string) {
	folder := t.TempDir()
	command(t, "tar", "xf", archive, "-C", folder)
	type blob struct {
		Digest   string
		Size     int64
		Platform struct{ OS, Architecture string }
	}
	load := func(b blob, into any) []byte {
		t.Helper()
		text := read(t, folder, "blobs/sha256/"+strings.TrimPrefix(b.Digest, "sha256:"))
		if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(text)); sum != b.Digest || int64(len(text)) != b.Size {
			t.Fatalf("%s of %d bytes is %s of %d", b.Digest, b.Size, sum, len(text))
		}
		if into != nil {
			if err := json.Unmarshal(text, into); err != nil {
				t.Fatal(err)
			}
		}
		return text
	}
	var top, index struct{ Manifests []blob }
	if err := json.Unmarshal(read(t, folder, "index.json"), &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("index.json: %+v, %v", top, err)
	}
	load(top.Manifests[0], &index)
	ran := false
	for _, m := range index.Manifests {
		var manifest struct {
			Config blob
			Layers []blob
		}
		load(m, &manifest)
		var config struct {
			OS, Architecture string
			Config           struct {
				User       string
				Entrypoint []string
			}
			RootFS struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		load(manifest.Config, &config)
		if config.Config.User != "65532:65532" || config.Architecture != m.Platform.Architecture ||
			len(manifest.Layers) != 1 || len(config.RootFS.DiffIDs) != 1 {
			t.Fatalf("%+v: %+v", m.Platform, config)
		}
		layer := load(manifest.Layers[0], nil)
		if len(layer) > largest {
			t.Errorf("the layer of %v has %d bytes", m.Platform, len(layer))
		}
		plain, err := gzip.NewReader(bytes.NewReader(layer))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(plain)
		if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(text)); err != nil || sum != config.RootFS.DiffIDs[0] {
			t.Errorf("the layer is %s, %v; want %v", sum, err, config.RootFS.DiffIDs)
		}
		if m.Platform.Architecture != runtime.GOARCH || runtime.GOOS != "linux" {
			continue
		}
		root := t.TempDir()
		packed := filepath.Join(t.TempDir(), "layer")
		if err := os.WriteFile(packed, text, 0o600); err != nil {
			t.Fatal(err)
		}
		command(t, "tar", "xf", packed, "--no-same-owner", "-C", root)
		out := command(t, filepath.Join(root, config.Config.Entrypoint[0]), "version")
		if !strings.Contains(out, "v0.1.0") {
			t.Errorf("the program of the image: %s", out)
		}
		files := list(t, root)
		slices.Sort(files)
		if !slices.Equal(files, []string{"etc/passwd", "jobledger", "licenses/LICENSE",
			"licenses/THIRD-PARTY-LICENSES.txt"}) {
			t.Errorf("the image has %q", files)
		}
		ran = true
	}
	if !ran && runtime.GOOS == "linux" {
		t.Error("the image has no program for this machine")
	}
}

// sources leaves out what is not part of the module.
type sources struct{ fs.FS }

func (s sources) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == ".git" || e.Name() == "dist" || !e.IsDir() && !e.Type().IsRegular()
	}), err
}

// TestReleaseRefusesWhatItCannotMake: nothing is written.
func TestReleaseRefusesWhatItCannotMake(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := "2026-11-24T22:00:00Z"
	for _, c := range []struct {
		want string
		args []string
	}{
		{"is not empty", []string{"-version", "v0.1.0", "-time", at, "-any-go", "-out", full}},
		{"it is v1.2.3", []string{"-version", "0.1", "-time", at}},
		{"-time: ", []string{"-version", "v0.1.0", "-time", "today"}},
		{"the systems are ", []string{"-version", "v0.1.0", "-time", at, "-only", "plan9/amd64"}},
		{"it is not PEM", []string{"-version", "v0.1.0", "-time", at, "-key", "go.mod"}},
		{"unexpected argument", []string{"now"}},
	} {
		out := filepath.Join(t.TempDir(), "dist")
		err := run(t.Context(), append([]string{"-out", out}, c.args...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.args, err)
		}
		if made, _ := os.ReadDir(out); len(made) > 0 {
			t.Errorf("%q: made %v", c.args, made)
		}
	}
}

// TestUnitsAreHardened: systemd rates the units of the packages below 3.0.
func TestUnitsAreHardened(t *testing.T) {
	tool(t, "systemd-analyze")
	for _, unit := range []string{"jobledger-serve.service", "jobledger-worker@.service"} {
		out := command(t, "systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager",
			"files/root/usr/lib/systemd/system/"+unit)
		_, rated, _ := strings.Cut(out, "Overall exposure level")
		t.Log(unit, strings.TrimSpace(rated))
	}
}

// tool skips the test where a program is missing, which with CI=true is a failure.
func tool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err) // the tests of this machine do without
	}
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func read(t *testing.T, folder, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// list returns the files below a folder.
func list(t *testing.T, folder string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, strings.TrimPrefix(name, folder+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// unpack unpacks an archive and returns its folder.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	into := t.TempDir()
	base, zipped := strings.CutSuffix(filepath.Base(archive), ".zip")
	if !zipped {
		command(t, "tar", "xzf", archive, "-C", into)
		return filepath.Join(into, strings.TrimSuffix(base, ".tar.gz"))
	}
	files, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if err := os.CopyFS(into, files); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(into, base)
}

// The README of archives and packages has no link to a file that they have not: pages are named as 'jobledger
// help' has them.
func TestReadmeLeadsToWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	made := string(withoutLinks(text))
	for _, found := range link.FindAllStringSubmatch(made, -1) {
		if to := found[2]; to != "LICENSE" && !strings.HasPrefix(to, "https://") {
			t.Errorf("a link to %s", to)
		}
	}
	if !strings.Contains(made, "`jobledger help quickstart`") || strings.Contains(made, "night.png") {
		t.Error(made)
	}
}
