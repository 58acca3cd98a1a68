//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// holdSlot takes one of so many locks, which end with the process, for a while. If all are taken, more
// commands run at once than the limit allows.
const holdSlot = `for i in $(seq %d); do
	exec 9>"slot$i"
	if flock -n 9; then sleep 0.06; exec cat >/dev/null; fi
done
echo "$JOBLEDGER_JOB" >>over`

// TestLimitUnderKills runs a limited queue with three worker processes, one of which is killed again and
// again. By the events and by the commands' own locks there are never more at once than the limit, and all
// jobs succeed.
func TestLimitUnderKills(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("no flock on this machine")
	}
	r := newRig(t)
	jobs, most := ledgertest.Size(40, 60, 200), ledgertest.Size(3, 3, 7)
	lines := make([]string, jobs)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"payload": "%d", "max_attempts": 1000}`, i)
	}
	if err := os.WriteFile(r.path("jobs.jsonl"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	r.must(0, invoke("enqueue", "-q", "api", "--jsonl", "jobs.jsonl"))
	r.must(0, invoke("limit", "-q", "api", "--running", fmt.Sprint(most)))
	work := func(name string) invocation {
		return invoke("work", "-q", "api", "--worker", name, "-j", "4", "--lease", "3s", "--drain", "--",
			"sh", "-c", fmt.Sprintf(holdSlot, most))
	}
	// The first worker dies with claims, which hold their slots until they are taken back.
	kills := 0
	die := func() {
		steps := []string{"child-runs", "child-ended", "task-ends", "committed"}
		step := fmt.Sprint(steps[rand.IntN(len(steps))], ":", 1+rand.IntN(3)) // #nosec G404 -- a test
		if r.do(work("a").dyingAt(step)).killed {
			kills++
		}
	}
	die()
	var others []*exec.Cmd
	for _, name := range []string{"b", "c"} {
		cmd := r.cmd(work(name))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		others = append(others, cmd)
	}
	for range ledgertest.Size(1, 2, 20) {
		die()
	}
	for _, cmd := range others {
		if err := cmd.Wait(); err != nil {
			t.Errorf("work: %v", err)
		}
	}
	r.must(0, invoke("sweep", "--grace", "0s").ahead(time.Hour))
	r.must(0, work("last").ahead(2*time.Hour))
	if over, err := os.ReadFile(r.path("over")); err == nil {
		t.Errorf("commands ran above the limit: %s", over)
	}
	live, peak, succeeded := 0, 0, 0
	for _, e := range r.history(db) {
		switch {
		case e.To.Held() && !e.From.Held():
			live++
			peak = max(peak, live)
		case e.From.Held() && e.Seq > 0 && !e.To.Held():
			live--
		}
		if e.Kind() == event.KindSucceeded {
			succeeded++
		}
	}
	if peak != most || succeeded != jobs || live != 0 {
		t.Errorf("up to %d at once, limit %d; %d of %d jobs succeeded", peak, most, succeeded, jobs)
	}
	if kills == 0 {
		t.Error("no worker was killed")
	}
	t.Logf("%d kills, %d reclaimed", kills, r.count(event.KindReclaimed))
	r.must(0, invoke("verify"))
}
