package meter

import (
	"cmp"
	"maps"
	"slices"

	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// ownerCommands are the commands that may be refused.
var ownerCommands = []string{"heartbeat", "succeed", "fail", "release", "cancel"}

// outcomes are the kinds that end a claim.
var outcomes = query.LaneOutcomes[1:]

// totals adds the counters of what happened since the first event. A queue that has had jobs has each
// counter, even at 0, so that its first increase is seen.
func (m *exposition) totals(queues map[string]*view.QueueTotals) {
	names := slices.Sorted(maps.Keys(queues))
	m.family("jobledger_events_total", "counter", "Events since the first one.")
	for _, name := range names {
		for _, k := range sortedKinds(queues[name].Kinds) {
			m.sample("jobledger_events_total", float64(queues[name].Kinds[k]), "kind", k.String(), "queue", name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" }) // the rest is about jobs
	m.family("jobledger_attempts_total", "counter", "Claims that have ended, by the event that ended them.")
	for _, name := range names {
		for _, k := range outcomes {
			m.sample("jobledger_attempts_total", float64(queues[name].Outcomes[k]), "queue", name, "outcome",
				k.String())
		}
	}
	m.family("jobledger_failures_total", "counter", "Claims that failed or were taken back, by their code.")
	for _, name := range names {
		for _, code := range slices.Sorted(maps.Keys(queues[name].Codes)) {
			m.sample("jobledger_failures_total", float64(queues[name].Codes[code]), "queue", name, "code", code)
		}
	}
	m.family("jobledger_refused_writes_total", "counter", "Writes of workers that had lost the job.")
	for _, name := range names {
		for _, command := range ownerCommands {
			m.sample("jobledger_refused_writes_total", float64(queues[name].Refused[command]), "queue", name,
				"command", command)
		}
	}
	m.family("jobledger_double_runs_total", "counter", "Refused results that differ from the accepted one.")
	for _, name := range names {
		m.sample("jobledger_double_runs_total", float64(queues[name].Doubles), "queue", name)
	}
	m.family("jobledger_job_wait_seconds", "histogram", "From when a job was ready to its claim.")
	for _, name := range names {
		m.histogram("jobledger_job_wait_seconds", &queues[name].Waits, "queue", name)
	}
	m.family("jobledger_job_run_seconds", "histogram", "From a claim to its end.")
	for _, name := range names {
		for _, k := range outcomes {
			h := queues[name].Runs[k]
			if h == nil && k == event.KindSucceeded {
				h = new(view.Histogram)
			}
			if h != nil {
				m.histogram("jobledger_job_run_seconds", h, "queue", name, "outcome", k.String())
			}
		}
	}
	m.family("jobledger_heartbeat_gap_seconds", "histogram", "From one sign of life of a claim to the next.")
	for _, name := range names {
		m.histogram("jobledger_heartbeat_gap_seconds", &queues[name].Gaps, "queue", name)
	}
}

func sortedKinds[V any](of map[event.Kind]V) []event.Kind {
	return slices.SortedFunc(maps.Keys(of), func(a, b event.Kind) int { return cmp.Compare(a, b) })
}

// histogram adds the samples of h.
func (m *exposition) histogram(name string, h *view.Histogram, labels ...string) {
	m.buckets(name, view.Buckets[:], h.Counts[:], h.Sum, h.Exemplars[:], labels...)
}

// buckets adds a histogram: the last of counts is for values above all ends. It has exemplars in OpenMetrics,
// unless these are nil.
func (m *exposition) buckets(name string, ends []float64, counts []int64, sum float64, of []view.Exemplar,
	labels ...string) {
	count := int64(0)
	for i, n := range counts {
		end := "+Inf"
		if count += n; i < len(ends) {
			end = m.endOf(ends[i])
		}
		last := ""
		if m.open && of != nil {
			last = exemplar(&of[i])
		}
		m.sampleOf(name+"_bucket", float64(count), last, append(slices.Clone(labels), "le", end)...)
	}
	m.sample(name+"_sum", sum, labels...)
	m.sample(name+"_count", float64(count), labels...)
}

// verified adds what the server's own verification found.
func (m *exposition) verified(v *view.Verifier) {
	last := v.Last()
	at := 0.0
	if !last.At.IsZero() {
		at = float64(last.At.UnixMicro()) / 1e6
	}
	m.one("jobledger_verified_pos", "Position up to which the events were verified.", float64(last.Until))
	m.one("jobledger_verify_findings", "How many findings the last verification had.",
		float64(len(last.Findings)))
	m.one("jobledger_verify_timestamp_seconds", "When it was verified last; 0: not yet.", at)
}
