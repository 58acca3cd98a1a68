//go:build unix

package child

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestScheduleSignals steps through seconds 1 to 9 and records which signal is sent when.
func TestScheduleSignals(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    schedule
		at   map[int]func(*schedule)
		want string
	}{
		{"none", schedule{}, nil, ""},
		{"max runtime", schedule{runtime: 3, killAfter: 2}, nil, "TERM@3 KILL@5 max_runtime"},
		{"lease", schedule{lease: lease{Term: 2, Kill: 6}, killAfter: 1}, nil, "TERM@2 KILL@6 lease"},
		{"lease without a term", schedule{lease: lease{Kill: 6}}, nil, "KILL@6 lease"},
		{"lease without a kill", schedule{lease: lease{Term: 2}, killAfter: 3}, nil, "TERM@2 KILL@5 lease"},
		{"max runtime just before the lease's end", schedule{
			runtime: 4, lease: lease{Term: 5, Kill: 6}, killAfter: 4,
		}, nil, "TERM@4 KILL@6 max_runtime"},
		{"extended in time", schedule{lease: lease{Term: 2, Kill: 3}}, map[int]func(*schedule){
			1: func(d *schedule) { d.lease = lease{Term: 5, Kill: 7} },
		}, "TERM@5 KILL@7 lease"},
		{"extended after term", schedule{lease: lease{Term: 2, Kill: 4}}, map[int]func(*schedule){
			3: func(d *schedule) { d.lease = lease{Term: 8, Kill: 9} },
		}, "TERM@2 KILL@4 lease"},
		{"stop", schedule{killAfter: 3}, map[int]func(*schedule){
			2: func(d *schedule) { d.stopNow = true },
		}, "TERM@2 KILL@5 stop"},
		{"stop and then kill", schedule{killAfter: 5}, map[int]func(*schedule){
			2: func(d *schedule) { d.stopNow = true },
			4: func(d *schedule) { d.killNow = true },
		}, "TERM@2 KILL@4 stop"},
		{"stop during the end of a lease", schedule{
			lease: lease{Term: 2, Kill: 9}, killAfter: 1,
		}, map[int]func(*schedule){
			4: func(d *schedule) { d.stopNow = true },
		}, "TERM@2 KILL@5 lease"},
		{"kill", schedule{}, map[int]func(*schedule){
			4: func(d *schedule) { d.killNow = true },
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
		if tt.d.cause != CauseNone {
			got = append(got, string(tt.d.cause))
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestInstantOfFrozenSender(t *testing.T) {
	before := clock().add(time.Second)
	deadline := time.Now().Add(time.Second)
	after := clock().add(time.Second)
	time.Sleep(20 * time.Millisecond) // here a worker may freeze
	begun := clock()
	got := instantOf(deadline)
	slack := time.Duration(clock()-begun) + time.Millisecond // the two clocks may differ in resolution
	if got < before.add(-slack) || got > after.add(time.Millisecond) {
		t.Errorf("it is at %d, want between %d and %d, and %v before that at most", got, before, after, slack)
	}
	if instantOf(time.Time{}) != 0 || instantOf(time.Unix(1, 0)) == 0 {
		t.Error("never and long ago are the same")
	}
}
