package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// Other users of a Unix socket have the scopes and queues that --peer says, and no others do.
func TestServePeersOnASocket(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of other users")
	}
	s, other := newSite(t), asUnprivileged(t)
	folder, err := os.MkdirTemp("", "serve") // a short path, which others can reach
	s.ok(err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s.ok(os.Chmod(folder, 0o711))
	at := "unix:" + filepath.Join(folder, "s")
	server, _ := s.serve("--listen", at, "--peer", "uid=65534:enqueue,work@mail,img-*")
	as := func(uid uint32, words ...string) exit {
		t.Helper()
		cmd := other.nobodys(words...)
		cmd.Env = append(os.Environ(), "HOME=/", "JOBLEDGER_URL="+at)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
		out, err := cmd.Output()
		stderr := ""
		if failed, ok := err.(*exec.ExitError); ok {
			stderr = string(failed.Stderr)
		} else if err != nil {
			t.Fatal(err)
		}
		return exit{string(out), stderr, cmd.ProcessState.ExitCode(), false}
	}
	for _, c := range []struct {
		uid   uint32
		words string
		code  int
		says  string
	}{
		{65534, "enqueue -q mail x", cli.ExitOK, ""},
		{65534, "enqueue -q img-small x", cli.ExitOK, ""},
		{65534, "enqueue -q other x", cli.ExitUnexpected, "not for the queue other"},
		{65534, "claim -q mail", cli.ExitOK, ""},
		{65534, "claim -q other", cli.ExitUnexpected, "not for the queue other"},
		{65533, "enqueue -q mail x", cli.ExitUnexpected, "this needs a token"},
		{0, "enqueue -q other x", cli.ExitOK, ""}, // the user of the server
	} {
		got := as(c.uid, strings.Fields(c.words)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.says) {
			t.Errorf("user %d, %s: %d %s", c.uid, c.words, got.code, got.stderr)
		}
	}
	events := s.run("events", "--json")
	all, own := strings.Count(events, `"actor":"unix:`), strings.Count(events, `"actor":"unix:root@`)
	if all != 4 || own != 1 {
		t.Errorf("%d events by users of the socket, %d of them by root, want 4 and 1:\n%s", all, own, events)
	}
	server.signal(syscall.SIGTERM)
	server.wantExit(cli.ExitOK)
	s.run("verify")
}
