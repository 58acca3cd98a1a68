package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/ledgertest"
)

// watch has a script look in a browser at pages of the real program, which serves a ledger with one job, and
// reports what it found. task is what else the script is given.
func watch(t *testing.T, script string, task func(job string) map[string]any) (seconds map[string][]float64) {
	t.Helper()
	browser := chromium(t)
	program, err := exec.LookPath("jobledger")
	check(t, err)
	s := commandstest.New(t)
	jobs, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"})
	check(t, err)
	given := task(string(jobs[0].Job.ID))
	given["program"], given["ledger"], given["browser"] = program, s.Store.Path(), browser
	in, err := json.Marshal(given)
	check(t, err)
	look := exec.CommandContext(t.Context(), "node", script)
	look.Dir, look.Stdin = browserFolder, bytes.NewReader(in)
	look.Env = append(os.Environ(), "HOME="+t.TempDir())
	var stderr bytes.Buffer
	look.Stderr = &stderr
	out, err := look.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, stderr.String())
	}
	var answer struct {
		Findings []string
		Seconds  map[string][]float64
	}
	check(t, json.Unmarshal(out, &answer))
	for _, f := range answer.Findings {
		t.Error(f)
	}
	return answer.Seconds
}

// A page that follows the ledger says within 5 s that it is not true any more, however it loses the server:
// that is killed, stopped or ended, the cable to it is cut, or the session has ended in another tab. The long
// tier loses it four times each way, with -answers 20 times.
func TestStaleSign(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	rounds := ledgertest.Size(1, 1, answersSize(2, 10))
	seconds := watch(t, "stale.mjs", func(string) map[string]any { return map[string]any{"rounds": rounds} })
	t.Logf("seconds until the sign: %v", seconds)
	for way, took := range seconds {
		if len(took) != 2*rounds {
			t.Errorf("%s: %d runs, want %d", way, len(took), 2*rounds)
		}
	}
}

// A page goes on with the ages on it, or says of when it is. Without a script nothing renews an age, so there
// is none of verification.
func TestAgesAreRenewed(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	watch(t, "ages.mjs", func(job string) map[string]any {
		return map[string]any{"follow": []string{"/", "/workers", "/failures", "/queues/mail", "/jobs/" + job},
			"rest": []string{"/jobs", "/lanes", "/events", "/diff", "/incident", "/integrity"}}
	})
}
