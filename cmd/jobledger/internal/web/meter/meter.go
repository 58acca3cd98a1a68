package meter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/status"
	"jobledger/projection/verdict"
)

// metricsAge is how old the figures of the ledger may be: they cost a look at every job that has not ended.
const metricsAge = 2 * time.Second

// cache has the newest figures of the ledger, so that many scrapes cost no more than one.
type cache struct {
	mu sync.Mutex
	of [2]cached // as text, and in OpenMetrics
}

type cached struct {
	at   time.Time // on the monotonic clock
	text string
}

// Meter answers with metrics. It is safe for concurrent use.
type Meter struct {
	*api.API
	Waiting func() int // how many claims wait; nil: none
	metrics cache
	totals  view.Totals
}

// Routes are its one.
func (a *Meter) Routes() []door.Route {
	return []door.Route{{Pattern: "GET /metrics", Needs: door.Metrics, Handle: a.serve, Doc: door.Doc{
		ID: "getMetrics", Types: []string{"text/plain", "application/openmetrics-text"},
		Summary: "Metrics in the text format of Prometheus, or in OpenMetrics for clients that ask for it by " +
			"Accept."}}}
}

// serve answers in the text format of Prometheus, version 0.0.4, or in OpenMetrics 1.0.
func (a *Meter) serve(w http.ResponseWriter, r *http.Request) error {
	open := wantsOpenMetrics(r)
	text, err := a.ledgerMetrics(r.Context(), open)
	if err != nil {
		return err
	}
	tail, err := a.Tail(r.Context())
	if err != nil {
		return err
	}
	m := &exposition{open: open}
	m.one("jobledger_view_lag_seconds", "For how long streams of events have been behind the ledger.",
		a.Follower.Lag(tail).Seconds())
	m.requests(a.Door.Answers(), a.Door.Durations())
	m.process()
	m.one("jobledger_sse_clients", "Streams of events that are open.", float64(a.Follower.Count()))
	if a.Waiting != nil {
		m.one("jobledger_long_polls", "Claims that wait for a job.", float64(a.Waiting()))
	}
	w.Header().Set("Content-Type", textMetrics)
	if open {
		w.Header().Set("Content-Type", openMetrics)
		_, _ = m.WriteString("# EOF\n") // it never fails
	}
	return door.Send(w, []byte(text+m.String()))
}

// ledgerMetrics returns the metrics of the ledger, at most metricsAge old.
func (a *Meter) ledgerMetrics(ctx context.Context, open bool) (string, error) {
	a.metrics.mu.Lock()
	defer a.metrics.mu.Unlock()
	kept := &a.metrics.of[0]
	if open {
		kept = &a.metrics.of[1]
	}
	if kept.text != "" && time.Since(kept.at) < metricsAge {
		return kept.text, nil
	}
	now := a.Now()
	var figures view.Figures
	var counted int64
	counts := &exposition{open: open}
	if err := a.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		if figures, err = a.Figures.ReadGauges(ctx, tx, now); err != nil {
			return err
		}
		counts.Reset()
		var traceErr error
		counted, _, err = a.totals.Refresh(ctx, tx, func(queues map[string]*view.QueueTotals) {
			if open {
				traceErr = view.AddTraces(ctx, tx, queues)
			}
			counts.totals(queues)
		})
		return cmp.Or(err, traceErr)
	}); err != nil {
		return "", err
	}
	m := &exposition{open: open}
	m.figures(figures, now)
	m.one("jobledger_counted_pos", "Position up to which the counters of the ledger count; they are left out "+
		"until it is that of the last event.", float64(counted))
	_, _ = m.WriteString(counts.String()) // it never fails
	m.verified(a.Verifier)
	m.sizes(a.Store)
	m.build(a.Store)
	kept.text, kept.at = m.String(), time.Now()
	return kept.text, nil
}

// exposition is text in the format of Prometheus, or in OpenMetrics.
type exposition struct {
	strings.Builder
	open bool // in OpenMetrics
}

// family begins the samples of one metric.
func (m *exposition) family(name, kind, help string) {
	if m.open {
		m.openFamily(name, kind, help)
		return
	}
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample adds one value; labels are pairs of name and value.
func (m *exposition) sample(name string, value float64, labels ...string) {
	m.sampleOf(name, value, "", labels...)
}

// sampleOf is sample with an exemplar.
func (m *exposition) sampleOf(name string, value float64, exemplar string, labels ...string) {
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+`="`+labelEscaper.Replace(labels[i+1])+`"`)
	}
	if len(pairs) > 0 {
		name += "{" + strings.Join(pairs, ",") + "}"
	}
	fmt.Fprintf(m, "%s %s%s\n", name, strconv.FormatFloat(value, 'g', -1, 64), exemplar)
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// one adds a metric that has one value.
func (m *exposition) one(name, help string, value float64) {
	m.family(name, "gauge", help)
	m.sample(name, value)
}

// queueGauges are the metrics that have one value for each queue.
var queueGauges = []struct {
	name, help string
	value      func(q status.Queue, now time.Time) float64
}{
	{"jobledger_queue_ready_jobs", "Jobs whose time has come and that no worker has claimed.",
		func(q status.Queue, _ time.Time) float64 { return float64(q.Ready) }},
	{"jobledger_queue_scheduled_jobs", "Queued jobs whose time has not come.",
		func(q status.Queue, _ time.Time) float64 { return float64(q.Scheduled) }},
	{"jobledger_queue_retrying_jobs", "Queued jobs that failed before.",
		func(q status.Queue, _ time.Time) float64 { return float64(q.Retrying) }},
	{"jobledger_queue_oldest_ready_seconds",
		"How long the first of the ready jobs has been ready; 0: there is none.",
		func(q status.Queue, now time.Time) float64 {
			if q.OldestReady.IsZero() {
				return 0
			}
			return max(0, now.Sub(q.OldestReady).Seconds())
		}},
	{"jobledger_queue_stranded_jobs", "Jobs that have been ready for a minute and that no worker may take.",
		func(q status.Queue, _ time.Time) float64 {
			n := int64(0)
			for _, s := range q.Stranded {
				n += s.Jobs
			}
			return float64(n)
		}},
	{"jobledger_queue_paused", "Whether the queue is paused.",
		func(q status.Queue, _ time.Time) float64 {
			if q.Paused {
				return 1
			}
			return 0
		}},
}

func (m *exposition) figures(f view.Figures, now time.Time) {
	m.family("jobledger_jobs", "gauge", "Jobs by queue and state.")
	for _, q := range f.Queues {
		for _, st := range event.States() {
			m.sample("jobledger_jobs", float64(q.Jobs[st]), "queue", q.Name, "state", st.String())
		}
	}
	for _, g := range queueGauges {
		m.family(g.name, "gauge", g.help)
		for _, q := range f.Queues {
			m.sample(g.name, g.value(q, now), "queue", q.Name)
		}
	}
	m.one("jobledger_leases_overdue", "Leases that ended long ago and that no worker has reclaimed.",
		float64(f.Overdue))
	m.one("jobledger_inbox_rows", "Rows of the inbox that are not jobs yet.", float64(f.Inbox.Waiting))
	m.one("jobledger_inbox_oldest_seconds", "How long the first of these has waited; 0: there is none.",
		f.Inbox.Age(now).Seconds())
	m.one("jobledger_inbox_refused", "Rows of the inbox of which the ledger takes no job.",
		float64(f.Inbox.Refused))
	m.family("jobledger_workers", "gauge", "Worker processes by state.")
	counts := make(map[status.WorkerState]int)
	for _, w := range f.Workers {
		counts[w.State]++
	}
	for _, st := range []status.WorkerState{status.Working, status.Idle, status.Silent} {
		m.sample("jobledger_workers", float64(counts[st]), "state", string(st))
	}
	m.family("jobledger_problems", "gauge",
		"Problems and warnings that the rules of doctor and status find, by code.")
	found := make(map[verdict.Code]int)
	for _, p := range f.Problems {
		if p.Level > verdict.Note {
			found[p.Code]++
		}
	}
	for _, code := range verdict.Codes {
		m.sample("jobledger_problems", float64(found[code]), "code", string(code))
	}
	m.one("jobledger_pos", "Position of the last event of the ledger.", float64(f.Pos))
	last := 0.0
	if f.Pos > 0 {
		last = float64(f.Last.At.UnixMicro()) / 1e6
	}
	m.one("jobledger_last_event_timestamp_seconds", "When the last event was recorded; 0: there is none.", last)
}

// sizes adds the sizes of the files of a ledger in SQLite.
func (m *exposition) sizes(store *ledger.Store) {
	if ledger.IsServerAddress(store.Path()) {
		return
	}
	size := func(path string) float64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return float64(info.Size())
	}
	m.one("jobledger_db_size_bytes", "Size of the ledger's file.", size(store.Path()))
	m.one("jobledger_wal_size_bytes", "Size of the write-ahead log next to it; 0: there is none.",
		size(store.Path()+"-wal"))
	if disk := ledger.FileSystemOf(store.Path()); disk.Known {
		m.one("jobledger_disk_free_bytes", "What this server may still write to the file system of the ledger.",
			float64(disk.Free))
		m.one("jobledger_disk_size_bytes", "Size of the file system of the ledger.", float64(disk.Size))
	}
}

// build adds which program answers.
func (m *exposition) build(store *ledger.Store) {
	b := buildinfo.Read()
	engine := "sqlite"
	if ledger.IsServerAddress(store.Path()) {
		engine = "postgres"
	}
	m.family("jobledger_build_info", "gauge", "The program that answers; the value is 1.")
	m.sample("jobledger_build_info", 1, "version", b.Version, "go", b.Go, "engine", engine,
		"schema", strconv.Itoa(store.SchemaVersion()))
}

// requests adds the answers of this server since it was started.
func (m *exposition) requests(counts map[door.Answered]int64, took map[string]door.Durations) {
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b door.Answered) int {
		return cmp.Or(strings.Compare(a.Route, b.Route), a.Status-b.Status)
	})
	m.family("jobledger_http_requests_total", "counter", "Answers of this server since it was started.")
	for _, k := range kinds {
		method, path := splitPattern(k.Route)
		m.sample("jobledger_http_requests_total", float64(counts[k]), "route", path, "method", method,
			"status", strconv.Itoa(k.Status))
	}
	m.family("jobledger_http_request_duration_seconds", "histogram",
		"How long the answers of this server took since it was started, streams to their end.")
	for _, route := range slices.Sorted(maps.Keys(took)) {
		d := took[route]
		method, path := splitPattern(route)
		m.buckets("jobledger_http_request_duration_seconds", door.Buckets[:], d.Counts[:], d.Sum, nil,
			"route", path, "method", method)
	}
}

// splitPattern returns the parts of a pattern of [http.ServeMux]; one of no route is all path.
func splitPattern(pattern string) (method, path string) {
	method, path, found := strings.Cut(pattern, " ")
	if !found {
		return "", pattern
	}
	return method, path
}
