package meter

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// started is when this process began, nearly.
var started = time.Now()

// process adds what this process uses, by the names that the clients of Prometheus have. What the system does
// not report is left out.
func (m *exposition) process() {
	m.one("process_start_time_seconds", "When the process started.", float64(started.UnixMilli())/1e3)
	if used, known := ProcessorTime(); known {
		m.family("process_cpu_seconds_total", "counter", "Time of the processors that the process has used.")
		m.sample("process_cpu_seconds_total", used.Seconds())
	}
	if bytes, known := residentMemory(); known {
		m.one("process_resident_memory_bytes", "Memory of the process.", float64(bytes))
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		m.one("process_open_fds", "Open files of the process.", float64(len(open)))
	}
	samples := []metrics.Sample{
		{Name: "/sched/goroutines:goroutines"}, {Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(samples)
	m.one("go_goroutines", "Goroutines.", float64(samples[0].Value.Uint64()))
	m.one("go_memstats_heap_alloc_bytes", "Memory of the objects on the heap.",
		float64(samples[1].Value.Uint64()))
}

// residentMemory reads the second number of statm, which counts pages
// (https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html).
func residentMemory() (bytes int64, known bool) {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
