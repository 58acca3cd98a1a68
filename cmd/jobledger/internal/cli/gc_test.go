package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// collections returns how many collections happen while size bytes become garbage.
func collections(size int) uint32 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for n := 0; n < size; n += 64 << 10 {
		garbage = make([]byte, 64<<10)
	}
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

var garbage []byte // a variable of the package, so that it is on the heap

func TestTuneGC(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			t.Skipf("%s is set in the environment", name)
		}
	}
	percent := func() int { // that is in force
		now := debug.SetGCPercent(usualPercent)
		debug.SetGCPercent(now)
		return now
	}
	before := percent()
	restore := TuneGC()
	runtime.GC()
	if n := collections(256 << 20); n > 24 { // 8 or 9 with so little in use; 64 at Go's own pace
		t.Errorf("%d collections of 256 MiB of garbage", n)
	}
	much := make([][]byte, 64) // 64 MiB in use: as Go does it
	for i := range much {
		much[i] = make([]byte, 1<<20)
	}
	for deadline := time.Now().Add(time.Minute); percent() != usualPercent; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("the heap may grow by %d %% with 64 MiB in use", percent())
		}
		time.Sleep(time.Millisecond)
	}
	runtime.KeepAlive(much)
	much = nil
	for deadline := time.Now().Add(time.Minute); percent() <= usualPercent; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("the heap may not grow to 32 MiB again, with little in use")
		}
		time.Sleep(time.Millisecond)
	}
	restore()
	runtime.GC()
	time.Sleep(10 * time.Millisecond)
	if now := percent(); now != before {
		t.Errorf("after its end the heap may grow by %d %%, before by %d", now, before)
	}
}

func TestTuneGCLeavesTheEnvironmentAlone(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetGCPercent(77)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	defer TuneGC()()
	if now := debug.SetGCPercent(77); now != 77 {
		t.Errorf("with GOGC=50 in the environment the percentage becomes %d", now)
	}
}
