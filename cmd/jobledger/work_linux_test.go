package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// zombiesOf returns the children of a process, and the zombies among them. The latter are programs that a
// shell has started: a worker always waits for its supervising parents.
func zombiesOf(parent int) (children, zombies []int) {
	ofShells := regexp.MustCompile(`\((sh|sleep|setsid)$`)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, _ := os.ReadFile(name)
		before, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if children = append(children, pid); fields[0] == "Z" && ofShells.MatchString(before) {
			zombies = append(zombies, pid)
		}
	}
	return children, zombies
}

// TestWorkAsInit: in a container, the worker adopts orphans. The first job kills its own supervising parent,
// so that its command becomes an orphan. The test sees it dead, and then reaped; the second job sees no
// zombies.
func TestWorkAsInit(t *testing.T) {
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
leave*) echo $$ >begun
	until [ -e go ]; do sleep 0.02; done
	setsid sh -c 'sleep 0.2' & sleep 0.1; kill -9 $PPID; sleep 5 ;;
look*) until [ "$(zombies)" -eq 0 ]; do sleep 0.02; done
	echo clean ;;
esac`)
	cmd.Dir = s.dir
	w := s.start(cmd)
	s.pids("begun", 1)
	children, _ := zombiesOf(w.Process.Pid)
	if len(children) != 1 {
		t.Fatalf("children of unshare: %v", children)
	}
	s.touch("go")
	var orphans []int
	s.eventually("an orphan has ended", func() bool {
		_, orphans = zombiesOf(children[0])
		return len(orphans) > 0
	})
	s.eventually("it is taken", func() bool {
		_, zombies := zombiesOf(children[0])
		return !slices.ContainsFunc(zombies, func(pid int) bool { return slices.Contains(orphans, pid) })
	})
	s.eventually("the second job sees none",
		func() bool { return strings.HasSuffix(s.events(second), "succeeded") })
	s.wantJob(first, `"error_code":"lost_child"`) // once, or reclaimed by now

	// The first process of a namespace receives only signals that it has a handler for.
	if err := syscall.Kill(children[0], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.wantSaid("no more jobs")
	w.wantExit(0)
	s.run("verify")
}

func TestWorkNotifiesServiceManager(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"file": "notify", "abstract": "@jobledger-test-" +
		strconv.Itoa(os.Getpid())} {
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
					t.Fatalf("reported %q, %v; want %q", message[:n], err, state)
				}
			}
			cmd := s.command("work", "-q", "mail", "--", "sh", "-c",
				"echo socket=$NOTIFY_SOCKET$WATCHDOG_USEC; "+untilGo)
			cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=300000000")
			w := s.start(cmd)
			want("READY=1")
			want("WATCHDOG=1") // the next one is due after 75 s
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

func TestWorkSurvivesServiceManager(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cmd := s.command("work", "-q", "mail", "--drain", "--", "true")
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.path("unread"))
	w := s.start(cmd)
	w.wantExit(0)
	w.wantSaid("NOTIFY_SOCKET: ")
}

// TestKilledWorkerIsSilentAtOnce: a worker process of this machine that did not report its end is silent at
// the next look, and serves its queue no longer. One of another namespace of process ids, in which its pid is
// another process's, is as its presence says.
func TestKilledWorkerIsSilentAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.enqueue("a")
	says := func(words ...string) string {
		t.Helper()
		a := s.outcomeOf(s.command(words...))
		return a.stdout + a.stderr
	}
	w := s.work("--", "sh", "-c", "echo $$ >begun; sleep 60")
	s.pids("begun", 1)
	waiting := s.enqueue("b")
	if said := says("workers", "--json"); !strings.Contains(said, `"state":"working"`) || strings.Contains(
		said, `"gone"`) {
		t.Errorf("a worker at work: %s", said)
	}
	w.signal(syscall.SIGKILL)
	<-w.exited
	if said := says("workers", "--json"); !strings.Contains(said, `"state":"silent"`) || !strings.Contains(
		said, `"gone":true`) {
		t.Errorf("a worker that was killed: %s", said)
	}
	if said := says("workers", "--wide"); !strings.Contains(said, ", gone") {
		t.Errorf("a worker that was killed: %s", said)
	}
	if said := says("why", waiting); !strings.Contains(said, "No worker is known") {
		t.Errorf("a job that waits: %s", said)
	}
	if exec.Command("unshare", "-pf", "--mount-proc", "true").Run() == nil {
		cmd := exec.Command("unshare", "-pf", "--mount-proc", "jobledger", "work", "-q", "other", "--", "true")
		cmd.Dir = s.dir
		s.start(cmd)
		s.eventually("a worker in a namespace of its own", func() bool {
			return strings.Contains(says("workers", "--json"), `"state":"idle"`)
		})
	}
	if said := says("verify"); !strings.Contains(said, "ok") {
		t.Error(said)
	}
}
