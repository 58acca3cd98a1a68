package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// The commands for ssh that the docs show lead to the pages, with the login link that serve prints, and to
// the API with a token; and from one Unix socket to another with neither.
func TestServeThroughSSH(t *testing.T) {
	t.Parallel()
	s, host := newSite(t), newSSHHost(t)
	const forward = "ssh -N -L 8080:127.0.0.1:8080 HOST"
	docs := readPage(t, "docs/http.md")
	for _, command := range []string{"serve --listen 127.0.0.1:8080", forward,
		`ssh -N -L "$PWD/http:/run/jobledger/http" HOST`, "work --url unix:http"} {
		if !strings.Contains(docs, "`"+command+"`") {
			t.Errorf("the docs do not have %s", command)
		}
	}
	// Both ends are of one host here, which has more than one address of its own.
	const there = "127.0.0.2"
	port := freePort(t, "127.0.0.1", there)
	server, _ := s.serve("--listen", there+":"+port)
	tunnel := host.run(s, strings.NewReplacer("127.0.0.1", there, "8080", port).Replace(forward))
	s.eventually("ssh forwards a port", func() bool { return listens("tcp", "127.0.0.1:"+port) })
	jar, err := cookiejar.New(nil)
	s.ok(err)
	browser := &http.Client{Jar: jar, Transport: &http.Transport{ // browsers know every name below localhost
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
		}}}
	defer browser.CloseIdleConnections()
	link := ""
	s.eventually("serve prints a login link", func() bool {
		_, rest, found := strings.Cut(server.said.String(), "open within 5 minutes, once: ")
		link, _, _ = strings.Cut(rest, "\n")
		return found && strings.HasSuffix(rest, "\n")
	})
	address, code, _ := strings.Cut(link, "#")
	if want := "http://jobledger.localhost:" + port + "/login"; address != want {
		t.Errorf("the login link is to %s, want %s", address, want)
	}
	look := func(address, shows string) {
		t.Helper()
		answer, err := browser.Get(address)
		s.ok(err)
		defer answer.Body.Close()
		if text := readAll(t, answer); answer.StatusCode != http.StatusOK || !strings.Contains(text, shows) {
			t.Errorf("%s: %s, without %s\n%s", address, answer.Status, shows, text)
		}
	}
	look(address, "<title>Log in")
	login, err := browser.PostForm(address, url.Values{"code": {code}})
	s.ok(err)
	s.ok(login.Body.Close())
	look(strings.TrimSuffix(address, "login"), "<h1>Overview")
	token := s.run("token", "create", "shop", "--scope", "enqueue", "--queue", "mail")
	s.ok(os.WriteFile(s.path("token"), []byte(token), 0o600))
	s.run("enqueue", "-q", "mail", "--url", "http://localhost:"+port, "--api-token-file", "token", "a")
	tunnel.signal(syscall.SIGTERM)
	<-tunnel.exited
	server.signal(syscall.SIGTERM)
	server.wantExit(cli.ExitOK)

	folder, err := os.MkdirTemp("", "ssh") // a short path
	s.ok(err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	far, near := filepath.Join(folder, "far"), filepath.Join(folder, "http")
	server, _ = s.serve("--listen", "unix:"+far)
	tunnel = host.run(s, "ssh -N -L "+near+":"+far+" HOST")
	s.eventually("ssh forwards a Unix socket", func() bool { return listens("unix", near) })
	if info, err := os.Stat(near); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket at this end has the mode %v, %v, want 0600", info.Mode(), err)
	}
	elsewhere := site{TB: t, dir: folder}
	elsewhere.run("enqueue", "-q", "mail", "--url", "unix:http", "b")
	elsewhere.run("work", "-q", "mail", "--drain", "--url", "unix:http", "--", "cat")
	if events := s.run("events", "--kind", "enqueued", "--json"); strings.Count(events,
		`"actor":"http:shop"`) != 1 || strings.Count(events, `"actor":"unix:`) != 1 {
		t.Errorf("the jobs were enqueued by others:\n%s", events)
	}
	if done := s.run("list", "--state", "succeeded", "--json"); strings.Count(done, `"state":"succeeded"`) != 2 {
		t.Errorf("these jobs were done through a Unix socket, want two:\n%s", done)
	}
	tunnel.signal(syscall.SIGTERM)
	<-tunnel.exited
	server.signal(syscall.SIGTERM)
	server.wantExit(cli.ExitOK)
	s.run("verify")
}

// listens reports whether something listens there.
func listens(network, address string) bool {
	c, err := net.Dial(network, address)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// freePort returns a port that is free on each of these addresses. It is none that the system gives out.
func freePort(t *testing.T, addresses ...string) (port string) {
	t.Helper()
	for free := false; !free; {
		port, free = fmt.Sprint(20_000+rand.IntN(12_000)), true
		for _, address := range addresses {
			l, err := net.Listen("tcp", net.JoinHostPort(address, port))
			if free = free && err == nil; err == nil {
				_ = l.Close()
			}
		}
		if t.Context().Err() != nil {
			t.Fatal("no port is free")
		}
	}
	return port
}

// sshHost is a host called HOST, this one, which the user of this test reaches by ssh.
type sshHost struct{ config string }

// newSSHHost starts an SSH server for the test on the loopback interface. Without its program the test is
// skipped on a user's machine, and fails in CI.
func newSSHHost(t *testing.T) sshHost {
	t.Helper()
	missing := func(err error) {
		t.Helper()
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	for _, tool := range []string{"ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(err)
		}
	}
	program, err := exec.LookPath("sshd")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/sshd") // it mostly is not in PATH
	}
	if err != nil {
		missing(err)
	}
	who, err := user.Current()
	check(t, err)
	if who.Uid == "0" {
		check(t, os.MkdirAll("/run/sshd", 0o755)) // it insists on that, and a system makes it when it starts
	}
	s := site{TB: t, dir: t.TempDir()}
	for _, name := range []string{"host", "user"} {
		key := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.path(name))
		if out, err := key.CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	port := freePort(t, "127.0.0.1")
	write := func(name, text string) {
		check(t, os.WriteFile(s.path(name), []byte(text), 0o600))
	}
	write("sshd", fmt.Sprintf(`ListenAddress 127.0.0.1:%s
HostKey %s
PidFile none
AuthorizedKeysFile %s
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
`, port, s.path("host"), s.path("user.pub")))
	public, err := os.ReadFile(s.path("host.pub"))
	check(t, err)
	write("known", "HOST "+string(public))
	write("ssh", fmt.Sprintf(`Host HOST
HostName 127.0.0.1
HostKeyAlias HOST
Port %s
User %s
IdentityFile %s
IdentitiesOnly yes
UserKnownHostsFile %s
StrictHostKeyChecking yes
ExitOnForwardFailure yes
BatchMode yes
`, port, who.Username, s.path("user"), s.path("known")))
	server := exec.Command(program, "-D", "-e", "-f", s.path("sshd"))
	s.start(server)
	s.eventually("the SSH server listens", func() bool { return listens("tcp", "127.0.0.1:"+port) })
	return sshHost{s.path("ssh")}
}

// run starts the command ssh as it is typed.
func (h sshHost) run(s site, line string) *running {
	s.Helper()
	words := strings.Fields(line)
	ssh := exec.Command(words[0], append([]string{"-F", h.config}, words[1:]...)...)
	ssh.Dir = s.dir
	return s.start(ssh)
}
