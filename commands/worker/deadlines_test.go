//go:build unix

package worker

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestDeadlines steps through seconds 1 to 9 and writes down which signals are sent when.
func TestDeadlines(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    deadlines
		at   map[int]func(*deadlines)
		want string
	}{
		{"none", deadlines{}, nil, ""},
		{"max runtime", deadlines{runtime: 3, killAfter: 2}, nil, "TERM@3 KILL@5 max_runtime"},
		{"lease", deadlines{lease: lease{Term: 2, Kill: 6}, killAfter: 1}, nil, "TERM@2 KILL@6 lease"},
		{"lease without a term", deadlines{lease: lease{Kill: 6}}, nil, "KILL@6 lease"},
		{"lease without a kill", deadlines{lease: lease{Term: 2}, killAfter: 3}, nil, "TERM@2 KILL@5 lease"},
		{"max runtime just before the lease's end", deadlines{runtime: 4, lease: lease{Term: 5, Kill: 6}, killAfter: 4}, nil, "TERM@4 KILL@6 max_runtime"},
		{"extended in time", deadlines{lease: lease{Term: 2, Kill: 3}}, map[int]func(*deadlines){
			1: func(d *deadlines) { d.lease = lease{Term: 5, Kill: 7} },
		}, "TERM@5 KILL@7 lease"},
		{"extended after term", deadlines{lease: lease{Term: 2, Kill: 4}}, map[int]func(*deadlines){
			3: func(d *deadlines) { d.lease = lease{Term: 8, Kill: 9} },
		}, "TERM@2 KILL@4 lease"},
		{"stop", deadlines{killAfter: 3}, map[int]func(*deadlines){
			2: func(d *deadlines) { d.stopNow = true },
		}, "TERM@2 KILL@5 stop"},
		{"stop and then kill", deadlines{killAfter: 5}, map[int]func(*deadlines){
			2: func(d *deadlines) { d.stopNow = true },
			4: func(d *deadlines) { d.killNow = true },
		}, "TERM@2 KILL@4 stop"},
		{"stop during the end of a lease", deadlines{lease: lease{Term: 2, Kill: 9}, killAfter: 1}, map[int]func(*deadlines){
			4: func(d *deadlines) { d.stopNow = true },
		}, "TERM@2 KILL@5 lease"},
		{"kill", deadlines{}, map[int]func(*deadlines){
			4: func(d *deadlines) { d.killNow = true },
		}, "KILL@4 kill"},
	} {
		var got []string
		for now := 1; now < 10 && !strings.Contains(fmt.Sprint(got), "KILL"); now++ {
			if change := tt.at[now]; change != nil {
				change(&tt.d)
			}
			if sig := tt.d.next(instant(now)); sig != 0 {
				got = append(got, fmt.Sprintf("%s@%d", strings.TrimPrefix(signalName(sig), "SIG"), now))
			}
		}
		if tt.d.cause != causeNone {
			got = append(got, string(tt.d.cause))
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestDeadlineSentLateIsNotLater(t *testing.T) {
	before := clock().add(time.Second)
	deadline := time.Now().Add(time.Second)
	after := clock().add(time.Second)
	time.Sleep(20 * time.Millisecond) // here a worker may freeze
	begun := clock()
	got := instantOf(deadline)
	slack := time.Duration(clock()-begun) + time.Millisecond // it reads two clocks, which may differ in grain
	if got < before.add(-slack) || got > after.add(time.Millisecond) {
		t.Errorf("it is at %d, want between %d and %d, and %v before that at most", got, before, after, slack)
	}
	if instantOf(time.Time{}) != 0 || instantOf(time.Unix(1, 0)) == 0 {
		t.Error("never is not told from long ago")
	}
}
