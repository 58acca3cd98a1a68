package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWorkAsTheFirstProcess: in a container, orphans come to the worker. The first job kills its own supervising
// parent, so that what it leaves behind is an orphan; the second sees that one dead, and then taken.
func TestWorkAsTheFirstProcess(t *testing.T) {
	if out, err := exec.Command("unshare", "-pf", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("no new PID namespace: %v: %s", err, out)
	}
	t.Parallel()
	s := newSite(t)
	first := s.enqueue("leave an orphan")
	second := s.enqueue("look for it")
	cmd := exec.Command("unshare", "-pf", "--mount-proc", "jobledger", "work", "-q", "mail", "--", "sh", "-c", `
zombies() { cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z 1 '; }
case $(cat) in
leave*) setsid sh -c 'sleep 0.2' & sleep 0.1; kill -9 $PPID; sleep 5 ;;
look*) echo $$ >begun
	until [ "$(zombies)" -gt 0 ]; do sleep 0.02; done
	until [ "$(zombies)" -eq 0 ]; do sleep 0.02; done
	echo clean ;;
esac`)
	cmd.Dir = s.dir
	w := s.start(cmd)
	s.pids("begun", 1)
	s.eventually("the orphan is taken", func() bool { return strings.HasSuffix(s.events(second), "succeeded") })
	s.wantJob(first, `"error_code":"lost_child"`) // once, or again by now

	// To the first process of a namespace only those signals get through that it has asked for.
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", w.Process.Pid))
	if err != nil {
		t.Skip(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		t.Fatalf("children of unshare: %q", children)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.wantSaid("no more jobs")
	w.wantExit(0)
	s.run("verify")
}

func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"file": "notify", "abstract": "@jobledger-test-" + strconv.Itoa(os.Getpid())} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			job := s.enqueue("x")
			if name == "file" {
				dir, err := os.MkdirTemp("", "sd") // a socket's path must be short
				if err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(dir)
				path = filepath.Join(dir, path)
			}
			socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			want := func(state string) {
				t.Helper()
				_ = socket.SetReadDeadline(time.Now().Add(10 * time.Second))
				message := make([]byte, 100)
				n, err := socket.Read(message)
				if string(message[:n]) != state {
					t.Fatalf("told %q, %v; want %q", message[:n], err, state)
				}
			}
			cmd := s.command("work", "-q", "mail", "--", "sh", "-c", "echo socket=$NOTIFY_SOCKET; "+untilGo)
			cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path)
			w := s.start(cmd)
			want("READY=1")
			s.pids("begun", 1)
			w.signal(syscall.SIGTERM)
			want("STOPPING=1")
			s.touch("go")
			w.wantExit(0)
			s.wantJob(job, `"result":"socket=\ndone\n"`)
			s.run("verify")
		})
	}
}

func TestAServiceManagerThatIsGoneIsNoReasonToEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cmd := s.command("work", "-q", "mail", "--drain", "--", "true")
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.path("nobody"))
	w := s.start(cmd)
	w.wantExit(0)
	w.wantSaid("NOTIFY_SOCKET: ")
}
