package lineartest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// history is one ledger that processes or goroutines work on.
type history struct {
	t     *testing.T
	store *ledger.Store
	clock linearClock
	jobs  int
	ops   [][]porcupine.Operation // by job

	mu     sync.Mutex
	counts map[string]int
}

func newHistory(t *testing.T, jobs int) *history {
	t.Helper()
	h := &history{t: t, clock: linearClock{time.Now().UnixMicro(), monotonic()}, jobs: jobs,
		ops: make([][]porcupine.Operation, jobs), counts: make(map[string]int)}
	h.store = h.open(ledgertest.Relaxed(ledgertest.New(t)))
	return h
}

func (h *history) open(dsn string) *ledger.Store {
	h.t.Helper()
	store, err := ledger.Open(h.t.Context(), dsn)
	if err != nil {
		h.t.Fatal(err)
	}
	store.Now = h.clock.now
	h.t.Cleanup(func() {
		if err := store.Close(); err != nil {
			h.t.Error(err)
		}
	})
	return store
}

// take adds the report of one process.
func (h *history) take(client int, report []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := operations(report, monotonic(), client, h.ops, h.counts); err != nil {
		h.t.Error(err)
	}
}

// end reads every job once more after all clients have ended, and checks the history of each job and the
// ledger.
func (h *history) end(counts map[string]int) {
	h.t.Helper()
	var out bytes.Buffer
	last := newClient(asIs{&commands.Service{Store: h.store}}, "last", h.clock, &linearReport{to: &out}, h.jobs,
		0)
	for n := range h.jobs {
		if err := last.enqueue(h.t.Context(), n); err != nil { // returns the existing job
			h.t.Fatal(err)
		}
	}
	h.take(1000, out.Bytes())
	if wrong := h.wrong(); wrong != "" {
		h.t.Error(wrong)
	}
	for what, n := range h.counts {
		counts[what] += n
	}
	commandstest.Verify(h.t, h.store)
}

// wrong returns the first job's history that is not linearizable, or "".
func (h *history) wrong() string {
	for n, ops := range h.ops {
		if wrong := checkLinear(ops); wrong != "" {
			return fmt.Sprintf("job %d: %s", n, wrong)
		}
	}
	return ""
}
