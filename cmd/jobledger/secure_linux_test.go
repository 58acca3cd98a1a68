package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// sight is what this user can see of a process; other users see only its arguments.
type sight struct {
	pid              int
	cmdline, environ string // arguments, and NAME=VALUE; each ends with a NUL
}

// processesIn returns the processes whose working folder is dir: a worker, its supervisors, and its commands.
func processesIn(t testing.TB, dir string) (found []sight) {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if cwd, err := os.Readlink(folder + "/cwd"); err != nil || cwd != dir {
			continue
		}
		cmdline, err1 := os.ReadFile(folder + "/cmdline")
		environ, err2 := os.ReadFile(folder + "/environ")
		p := sight{cmdline: string(cmdline), environ: string(environ)}
		if _, err := fmt.Sscanf(folder, "/proc/%d", &p.pid); err != nil || err1 != nil || err2 != nil ||
			len(environ) == 0 {
			continue // it has ended, or is in an exec
		}
		found = append(found, p)
	}
	return found
}

// shownBy returns the words that a process shows.
func (p sight) shownBy(words map[string]string) (found []string) {
	for name, word := range words {
		if strings.Contains(p.cmdline, word) {
			found = append(found, name+" in the arguments")
		}
		if strings.Contains(p.environ, word) {
			found = append(found, name+" in the environment")
		}
	}
	slices.Sort(found)
	return found
}

// A payload reaches the command on its standard input and nowhere else. The token that permits writes is in
// the environment of the command, which only this user can read, and never among the arguments, which all
// users can read. A secret in the environment of the worker is passed on only by --env.
func TestPayloadIsOnStdinOnly(t *testing.T) {
	for name, test := range map[string]struct {
		start     string   // a shell command, run in the folder of the ledger
		processes []string // each process, with the secrets that it shows
	}{
		"work": {`exec jobledger work -q mail --env API_KEY -- sh ./command`,
			[]string{"command: key in the environment, token in the environment", "supervisor:",
				"worker: key in the environment, other in the environment"}},
		"work without --env": {`exec jobledger work -q mail -- sh ./command`,
			[]string{"command: key in the environment, other in the environment, token in the environment",
				"supervisor:",
				"worker: key in the environment, other in the environment"}},
		"claim and exec": {`eval "$(jobledger claim -q mail --sh)"; ` +
			`exec jobledger exec --env API_KEY -- sh ./command`,
			[]string{"command: key in the environment, token in the environment", "supervisor:",
				"worker: key in the environment, other in the environment, token in the environment"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			dir, err := filepath.EvalSymlinks(s.dir)
			if err != nil {
				t.Fatal(err)
			}
			script := `cat >payload; printf %s "$JOBLEDGER_TOKEN" >token; ` + untilGo
			if err := os.WriteFile(s.path("command"), []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			job := s.enqueue("for your eyes only")
			cmd := exec.Command("sh", "-c", test.start)
			cmd.Dir = s.dir
			cmd.Env = append(os.Environ(), "API_KEY=swordfish", "OTHER_KEY=sesame")
			w := s.start(cmd)
			s.pids("begun", 1)
			payload, err1 := os.ReadFile(s.path("payload"))
			token, err2 := os.ReadFile(s.path("token"))
			words := map[string]string{"payload": string(payload), "token": string(token), "key": "swordfish",
				"other": "sesame"}
			if err := errors.Join(err1, err2); err != nil || words["payload"] != "for your eyes only" ||
				len(words["token"]) != 26 {
				t.Fatalf("the command got %v: %v", words, err)
			}
			var got []string
			for _, p := range processesIn(t, dir) {
				role := "worker"
				switch {
				case strings.HasPrefix(p.cmdline, "sh\x00./command\x00"):
					role = "command"
				case strings.HasSuffix(p.cmdline, "\x00supervise\x00"):
					role = "supervisor"
				case !strings.HasPrefix(p.cmdline, "jobledger\x00"): // the sleep of the command
					continue
				}
				got = append(got, strings.TrimSpace(role+": "+strings.Join(p.shownBy(words), ", ")))
			}
			slices.Sort(got)
			// while a shell starts a program there are two processes
			if got := slices.Compact(got); !slices.Equal(got, test.processes) {
				t.Errorf("got  %q\nwant %q", got, test.processes)
			}
			s.touch("go")
			if strings.HasPrefix(name, "work") {
				w.signal(syscall.SIGTERM)
			}
			w.wantExit(0)
			s.wantJob(job, `"state":"succeeded"`)
			s.run("verify")
		})
	}
}

// A payload among the arguments or in the environment is detected; otherwise the test above would prove
// nothing.
func TestPayloadLeakIsDetected(t *testing.T) {
	t.Parallel()
	s := site{TB: t, dir: t.TempDir()}
	dir, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", untilGo, "sh", "a=payload")
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "A=token")
	s.start(cmd)
	s.pids("begun", 1)
	var got []string
	for _, p := range processesIn(t, dir) {
		if strings.HasPrefix(p.cmdline, "sh\x00") {
			got = p.shownBy(map[string]string{"payload": "payload", "token": "token"})
		}
	}
	if strings.Join(got, ", ") != "payload in the arguments, token in the environment" {
		t.Errorf("seen: %q", got)
	}
}
