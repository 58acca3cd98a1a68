package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// debian is an empty Debian in a folder.
type debian struct {
	*testing.T
	root string
}

// command returns a command that runs in the folder as if that were all there is, as a user of it.
func (d debian) command(user string, words ...string) *exec.Cmd {
	const inside = `root=$0 user=$1; shift; mount -t proc proc "$root/proc"; exec chroot "$root" \
		setpriv --reuid "$user" --regid "$user" --init-groups -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		HOME="$(chroot "$root" sh -c 'eval echo ~'"$user")" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"`
	return exec.CommandContext(d.Context(), "unshare",
		append([]string{"--mount", "--propagation", "private", "sh", "-ec", inside, d.root, user}, words...)...)
}

func (d debian) run(user string, words ...string) string {
	d.Helper()
	out, err := d.command(user, words...).CombinedOutput()
	if err != nil {
		d.Fatalf("%s: %q: %v\n%s", user, words, err, out)
	}
	return string(out)
}

// unit is a unit of systemd, with what its lines say by their names.
type unit map[string][]string

// unit reads a unit that is enabled in the folder.
func (d debian) unit(name, instance string) unit {
	d.Helper()
	file := strings.Replace(name, "@"+instance, "@", 1)
	at := filepath.Join("etc/systemd/system/multi-user.target.wants", name)
	if to, err := os.Readlink(filepath.Join(d.root, at)); err != nil || !strings.HasSuffix(to, "/"+file) {
		d.Fatalf("%s is not enabled: %s, %v", name, to, err)
	}
	u := make(unit)
	text := strings.ReplaceAll(string(read(d.T, d.root, "usr/lib/systemd/system/"+file)), "%i", instance)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			u[key] = append(u[key], value)
		}
	}
	return u
}

// start runs what systemd would run for a unit, with its user, environment, folder and umask, and returns the
// lines that it writes. It ends with the test, by SIGTERM, and must end with 0.
func (d debian) start(u unit) <-chan string {
	d.Helper()
	var script strings.Builder
	script.WriteString("set -a; umask " + u["UMask"][0] + "; cd " + u["WorkingDirectory"][0] + "\n")
	for _, setting := range u["Environment"] {
		script.WriteString(setting + "\n")
	}
	for _, file := range u["EnvironmentFile"] {
		file = strings.TrimPrefix(file, "-")
		script.WriteString("[ ! -e " + file + " ] || . " + file + "\n")
	}
	script.WriteString(u["ExecStartPre"][0] + "\nexec " + u["ExecStart"][0] + "\n")
	cmd := d.command(u["User"][0], "sh", "-ec", script.String())
	out, in, err := os.Pipe()
	if err != nil {
		d.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	_ = in.Close()
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			d.Log(s.Text())
			select {
			case lines <- s.Text():
			default:
			}
		}
	}()
	d.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			d.Errorf("%s: %v", u["ExecStart"], err)
		}
	})
	return lines
}

// emptyDebian makes the folder: with debootstrap, or as a copy of one that JOBLEDGER_TEST_DEBIAN names.
func emptyDebian(t *testing.T) debian {
	t.Helper()
	for _, name := range []string{"debootstrap", "unshare", "setpriv"} {
		tool(t, name)
	}
	if os.Getuid() != 0 {
		t.Skip("only root may make a Debian in a folder")
	}
	d := debian{t, filepath.Join(t.TempDir(), "root")}
	if err := exec.Command("unshare", "--mount", "true").Run(); err != nil {
		t.Skip("mounts are not allowed here, as in a container") // so nothing can be tried
	}
	for dir := filepath.Dir(d.root); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if made := os.Getenv("JOBLEDGER_TEST_DEBIAN"); made != "" {
		command(t, "cp", "-a", made, d.root)
		return d
	}
	command(t, "debootstrap", "--variant=minbase", "--include=systemd", "bookworm", d.root)
	return d
}

// TestQuickStartInEmptyDebian does what docs/quickstart.md says, in a Debian in which nothing else is
// installed. There is no systemd running, so the test starts what the units that are enabled would start.
func TestQuickStartInEmptyDebian(t *testing.T) {
	if !*long {
		t.Skip("downloads a Debian, which takes a minute: with -long")
	}
	d := emptyDebian(t)
	deb := "jobledger_0.1.0_" + runtime.GOARCH + ".deb"
	dist := made(t, "../..", "v0.1.0", "-only", "linux/"+runtime.GOARCH)
	if err := os.WriteFile(filepath.Join(d.root, "root", deb), read(t, dist, deb), 0o644); err != nil {
		t.Fatal(err)
	}
	d.run("root", "useradd", "--create-home", "ada")
	page := string(read(t, "../../cmd/jobledger/docs", "quickstart.md"))
	blocks := strings.Split(page, "```sh\n")
	if len(blocks) < 3 {
		t.Fatalf("the page has %d scripts", len(blocks)-1)
	}
	script := func(n int) string { text, _, _ := strings.Cut(blocks[n], "```"); return text }
	install := strings.ReplaceAll(script(1), "jobledger_0.1.0_amd64.deb", deb)
	install = strings.ReplaceAll(install, "systemctl enable --now", "systemctl enable") // they are started below
	t.Log(d.run("root", "sh", "-exc", "cd\n"+install))
	// Any port: another program may have that of the unit.
	settings := filepath.Join(d.root, "etc/jobledger/env")
	if err := os.WriteFile(settings, []byte("SERVE_FLAGS=--listen=127.0.0.1:0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	pages := d.start(d.unit("jobledger-serve.service", ""))
	var base string
	for line := range pages {
		if _, at, ok := strings.Cut(line, "listens at "); ok {
			base = "http://" + at
			break
		}
	}
	d.start(d.unit("jobledger-worker@mail.service", "mail"))

	out := d.run("ada", "sh", "-exc", "cd\n"+script(2))
	if !strings.Contains(out, "Dear Ada") || !strings.Contains(out, "succeeded") {
		t.Errorf("ada sees %s", out)
	}
	// Who is not of the group may do nothing.
	d.run("root", "useradd", "--create-home", "eve")
	eve := d.command("eve", "jobledger", "list", "--db", "/var/lib/jobledger/jobs.db")
	if out, err := eve.CombinedOutput(); err == nil {
		t.Errorf("eve sees %s", out)
	}

	// It is in the API of the pages.
	db := "JOBLEDGER_DB=/var/lib/jobledger/jobs.db"
	token := d.run("jobledger", "env", db, "jobledger", "token", "create", "t", "--scope", "read", "--queue", "*")
	token = strings.TrimSpace(token[strings.LastIndexByte(strings.TrimSpace(token), '\n')+1:])
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/jobs?queue=mail", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Contains(text, []byte(`"succeeded"`)) {
		t.Errorf("serve answers %s: %s, %v", answer.Status, text, err)
	}

	var found []struct{ Code, Severity, Seen string }
	for line := range strings.Lines(d.run("root", "env", db, "jobledger", "doctor", "--json")) {
		var f struct{ Code, Severity, Seen string }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Error(err, line)
		}
		found = append(found, f)
	}
	if len(found) > 0 {
		t.Errorf("doctor finds %v", found)
	}
	d.run("root", "rm", "/etc/systemd/system/multi-user.target.wants/jobledger-worker@mail.service")
	d.run("root", "chown", "root:root", "/var/lib/jobledger/jobs.db")
	out = d.run("root", "sh", "-c", db+" jobledger doctor || :")
	for _, code := range []string{"D38", "D39"} {
		if !strings.Contains(out, code) {
			t.Errorf("doctor does not find %s: %s", code, out)
		}
	}
	d.run("root", "chown", "jobledger:jobledger", "/var/lib/jobledger/jobs.db")
	d.run("ada", "env", db, "jobledger", "verify")
}
