package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// rootQueue has the one job whose command becomes root, so that the worker of a second user cannot end it.
const rootQueue = "root"

// admitSecond shares the ledger with a second user by its group, and gives that user the program, and a
// command that becomes root. If this process cannot be several users, it does nothing.
func (s *soak) admitSecond() {
	if !s.edges || s.disk == 0 {
		return
	}
	folder := filepath.Join(filepath.Dir(s.dir), "second")
	if os.Mkdir(folder, 0o777) != nil || os.Lchown(folder, bobUID, sharedGID) != nil {
		return
	}
	program, err := os.ReadFile("/proc/self/exe")
	syscall.ForkLock.RLock() // no other process inherits the open file
	for name, mode := range map[string]os.FileMode{"jobledger": 0o755, "as-root": 0o755} {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), program, mode))
	}
	syscall.ForkLock.RUnlock()
	err = errors.Join(err, syscall.Chmod(filepath.Join(folder, "as-root"), 0o4755),
		os.WriteFile(filepath.Join(folder, "hold"), nil, 0o600),
		os.Chmod(filepath.Dir(s.dir), 0o711), os.Lchown(s.dir, 0, sharedGID), syscall.Chmod(s.dir, 0o2770),
		os.Lchown(s.path("jobledger.db"), 0, sharedGID), os.Chmod(s.path("jobledger.db"), 0o660))
	if err != nil {
		s.Fatal(err)
	}
	s.second = folder
	const name = "becomes-root"
	s.sent[name] = sha256.Sum256([]byte(name))
	s.run("enqueue", "-q", rootQueue, "--key", name, "--max-runtime", "1s", "--max-attempts", "3", name)
	s.rooting = s.asSecond("second", "", nil, "work", "-q", rootQueue, "--worker", "own", "--lease",
		soakLease.String(), "--kill-after", "300ms", "--", filepath.Join(folder, "as-root"))
	s.eventually("the command is root", func() bool { return s.roots() == 1 })
}

// asSecond starts the program as the second user.
func (s *soak) asSecond(role, stdin string, stdout io.Writer, words ...string) *soakProcess {
	cmd := exec.Command("sh", append([]string{"-c", `umask 007; exec "$0" "$@"`,
		filepath.Join(s.second, "jobledger")}, words...)...)
	cmd.Dir = s.second
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: bobUID, Gid: bobUID,
		Groups: []uint32{sharedGID}}}
	s.counted("commands of a second user", 1)
	return s.beginAs(role, cmd, strings.NewReader(stdin), stdout)
}

// produceAsSecond enqueues jobs with keys, and sends each again until it is acknowledged.
func (s *soak) produceAsSecond() {
	dice := s.dice("second", 0)
	for n := 0; s.underLoad(); n++ {
		name := fmt.Sprint("g-", n)
		payload := s.newJob(name, dice)
		for s.underLoad() {
			var id strings.Builder
			p := s.asSecond("producer", payload, &id, "enqueue", "-q", "a", "--key", name, "--max-attempts", "3", "-")
			if s.end(p) == 0 {
				s.acknowledge(ack{Kind: "enqueued", Job: strings.TrimSpace(id.String()), Name: name})
				break
			}
			s.pause(50 * time.Millisecond)
		}
		s.pause(time.Duration(100+dice.IntN(300)) * time.Millisecond)
	}
}

// watchRoot requires until the end of the load that there is one command that became root, though its worker
// could not end it at its max runtime. Then it ends.
func (s *soak) watchRoot() {
	for s.underLoad() {
		if n := s.roots(); n != 1 {
			s.counted("twice", 1)
			s.faulty("a command that cannot be ended, and %d were started", n)
			break
		}
		s.pause(100 * time.Millisecond)
	}
	_ = os.Remove(filepath.Join(s.second, "hold"))
	s.terminate(s.rooting)
	s.end(s.rooting)
}

// roots is how many commands have become root.
func (s *soak) roots() int {
	text, _ := os.ReadFile(filepath.Join(s.second, "roots"))
	return strings.Count(string(text), "\n")
}
