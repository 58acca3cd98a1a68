package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	leastHeap    = 32 << 20 // bytes up to which the heap may grow before garbage is collected
	firstHeap    = 4 << 20  // the same as Go has it, at usualPercent
	usualPercent = 100      // of what is in use, by which Go lets the heap grow
	mostPercent  = usualPercent * leastHeap / firstHeap
)

// TuneGC makes garbage collection rarer where little memory is in use: the heap may grow to 32 MiB, or to
// twice what is in use if that is more. Go's own pace begins at 4 MiB. What reads much and keeps little, such
// as a server or verify, so needs about a fifth less processor time. GOGC or GOMEMLIMIT in the environment
// switch it off. restore ends it.
func TuneGC() (restore func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	p := &pace{percent: mostPercent, before: debug.SetGCPercent(mostPercent)}
	p.follow()
	return p.end
}

// pace sets the percentage by which the heap may grow after each collection.
type pace struct {
	mu      sync.Mutex
	percent int
	before  int // what end sets
	ended   bool
}

// follow has adapt called once, after the next collection.
func (p *pace) follow() {
	runtime.AddCleanup(new(struct{ _ *pace }), func(p *pace) { p.adapt() }, p)
}

// adapt sets the percentage for what is in use now.
func (p *pace) adapt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	used := max(1, int(live[0].Value.Uint64())) // #nosec G115 -- a size of memory
	percent := min(mostPercent, max(usualPercent, 100*(leastHeap-used)/used))
	if off := percent - p.percent; 10*max(off, -off) > p.percent { // setting it stops the program for a moment
		p.percent = percent
		debug.SetGCPercent(percent)
	}
	p.follow()
}

func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	debug.SetGCPercent(p.before)
}
