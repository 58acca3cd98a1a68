//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"jobledger/ledger/event"
)

// TestSweepKilledWhileResolving ends a job that 1,500 others wait for, and kills the sweeper after its first
// step. Each job is unblocked once: 256 by the process that ended the first one, the others by the sweepers.
func TestSweepKilledWhileResolving(t *testing.T) {
	const children = 1500
	r := newRig(t)
	first := r.must(0, invoke("enqueue", "-q", "first"))
	lines := strings.Repeat(fmt.Sprintf("{\"after\":[%q]}\n", first), children)
	if err := os.WriteFile(r.path("children.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	r.must(0, invoke("enqueue", "-q", "rest", "--jsonl", "children.jsonl"))
	var claimed struct {
		Token string `json:"lease_token"`
	}
	text := r.must(0, invoke("claim", "-q", "first", "--worker", "w1", "--json"))
	if err := json.Unmarshal([]byte(text), &claimed); err != nil {
		t.Fatal(err)
	}
	unblocked := func() (n int) {
		for _, e := range r.history("jobledger.db") {
			if e.Kind() == event.KindUnblocked {
				n++
			}
		}
		return n
	}
	r.must(0, invoke("succeed", first, "--token", claimed.Token))
	if n := unblocked(); n != 256 {
		t.Errorf("the end of the first job unblocked %d, want 256", n)
	}
	if got := r.do(invoke("sweep").dyingAt("resolved")); !got.killed {
		t.Fatalf("the sweeper was not killed: %+v", got)
	}
	if n := unblocked(); n != 1256 {
		t.Errorf("%d are unblocked after one step of a sweeper, want 1256", n)
	}
	r.must(0, invoke("sweep"))
	if n := unblocked(); n != children {
		t.Errorf("%d are unblocked at the end, want %d", n, children)
	}
}
