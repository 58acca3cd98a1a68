package workerotel_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"jobledger/commands"
	"jobledger/commands/jobledgertest"
	"jobledger/commands/worker"
	"jobledger/commands/workerotel"
	"jobledger/ledger"
	"jobledger/projection"
)

// meter collects what is reported.
type meter struct {
	spans  *tracetest.SpanRecorder
	reader *metric.ManualReader
	workerotel.Options
}

func newMeter() *meter {
	m := &meter{spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	m.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(m.spans))
	m.Meters = metric.NewMeterProvider(metric.WithReader(m.reader))
	return m
}

// counts returns the points of the metric, as "attribute=value … count".
func (m *meter) counts(t *testing.T, name string) (points []string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := m.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, found := range scope.Metrics {
			if found.Name != name {
				continue
			}
			switch data := found.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					points = append(points, fmt.Sprint(words(p.Attributes), p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					points = append(points, fmt.Sprint(words(p.Attributes), p.Count))
				}
			}
		}
	}
	slices.Sort(points)
	return points
}

func words(set attribute.Set) string {
	var text strings.Builder
	for _, kv := range set.ToSlice() {
		fmt.Fprintf(&text, "%s=%s ", kv.Key, kv.Value.String())
	}
	return text.String()
}

// TestInstrumentSaysWhatTheLedgerSays: each way in which an attempt can end is the outcome of its span and of
// its metrics.
func TestInstrumentSaysWhatTheLedgerSays(t *testing.T) {
	l, m := jobledgertest.New(t), newMeter()
	var ended []string
	h := worker.HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
		trace.SpanFromContext(ctx).AddEvent("in the handler")
		switch string(job.Payload) {
		case "fail":
			return nil, fmt.Errorf("send: %w", &worker.Error{Code: "smtp", Err: errors.New("451")})
		case "snooze":
			return nil, worker.Snooze(time.Hour)
		case "cancel":
			return nil, worker.Cancel("no need")
		case "panic":
			panic("at the disco")
		case "cancelled by an operator":
			if _, err := l.Service.Cancel(ctx, "ada", job.ID, ""); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	for _, payload := range []string{"fine", "fail", "snooze", "cancel", "panic", "cancelled by an operator"} {
		_, err := l.Enqueue(t.Context(), "web", commands.Enqueue{Queue: "mail", Payload: []byte(payload),
			Key: payload, MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
	}
	w := &worker.Worker{Service: l.Service, Handler: h, Queues: []string{"mail"}, Drain: true, SweepEvery: -1,
		Hooks: worker.Hooks{Ended: func(job projection.Job, how worker.Ending, _ time.Duration) {
			ended = append(ended, job.Key+" "+string(how))
		}}}
	if err := workerotel.Instrument(w, m.Options); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var spans []string
	for _, s := range m.spans.Ended() {
		attributes := attribute.NewSet(s.Attributes()...)
		value := func(key attribute.Key) string { v, _ := attributes.Value(key); return v.String() }
		spans = append(spans, fmt.Sprintf("%s: %s %s, %s, %s %s", value("jobledger.key"), s.Name(),
			value("jobledger.outcome"), value("jobledger.state"), s.Status().Code, value("error.type")))
		events := len(s.Events())
		if failed := s.Status().Code == codes.Error; failed != (events > 1) && value("error.type") != "panic" {
			t.Errorf("%s: the span has %d events", value("jobledger.key"), events)
		}
	}
	slices.Sort(spans)
	want := []string{
		"cancel: process mail cancelled, cancelled, Unset ",
		"cancelled by an operator: process mail cancelled, cancelled, Unset ",
		"fail: process mail failed, failed, Error smtp",
		"fine: process mail succeeded, succeeded, Unset ",
		"panic: process mail failed, failed, Error panic",
		"snooze: process mail released, queued, Unset ",
	}
	if !slices.Equal(spans, want) {
		t.Errorf("spans:\n%s\nwant:\n%s", strings.Join(spans, "\n"), strings.Join(want, "\n"))
	}
	if len(ended) != len(want) {
		t.Errorf("the hook that was there before: %q", ended)
	}
	counts := []string{
		"error.type=panic jobledger.outcome=failed messaging.destination.name=mail 1",
		"error.type=smtp jobledger.outcome=failed messaging.destination.name=mail 1",
		"jobledger.outcome=cancelled messaging.destination.name=mail 2",
		"jobledger.outcome=released messaging.destination.name=mail 1",
		"jobledger.outcome=succeeded messaging.destination.name=mail 1",
	}
	for _, name := range []string{"jobledger.worker.jobs", "jobledger.worker.duration"} {
		if got := m.counts(t, name); !slices.Equal(got, counts) {
			t.Errorf("%s:\n%s", name, strings.Join(got, "\n"))
		}
	}
	if got := m.counts(t, "jobledger.worker.wait"); !slices.Equal(got,
		[]string{"messaging.destination.name=mail 6"}) {
		t.Errorf("wait: %q", got)
	}
	if got := m.counts(t, "jobledger.worker.running"); !slices.Equal(got,
		[]string{"messaging.destination.name=mail 0"}) {
		t.Errorf("running: %q", got)
	}
}

// TestInstrumentCountsStuckHandlers: a handler that does not stop counts once, until its end, and the hook
// that was set before decides about its slot.
func TestInstrumentCountsStuckHandlers(t *testing.T) {
	m := newMeter()
	w := &worker.Worker{Hooks: worker.Hooks{Stuck: func(projection.Job, error, time.Duration, int) worker.Slot {
		return worker.GiveSlot
	}}}
	if err := workerotel.Instrument(w, m.Options); err != nil {
		t.Fatal(err)
	}
	count := func(want string) {
		t.Helper()
		if got := m.counts(t, "jobledger.worker.stuck"); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %s", got, want)
		}
	}
	job := projection.Job{ID: "01J", Queue: "mail", Attempt: 1}
	w.Hooks.Started(job, 0)
	for range 2 {
		if w.Hooks.Stuck(job, worker.ErrMaxRuntime, time.Second, 1) != worker.GiveSlot {
			t.Error("the hook that was set before was not asked")
		}
		count("messaging.destination.name=mail 1")
	}
	w.Hooks.Ended(job, worker.Lost, time.Minute)
	count("messaging.destination.name=mail 0")
}

// TestInjectCarriesTheTrace: the attempts of a job are spans of the trace in which it was enqueued.
func TestInjectCarriesTheTrace(t *testing.T) {
	l, m := jobledgertest.New(t), newMeter()
	ctx, request := m.Tracers.Tracer("web").Start(t.Context(), "POST /orders")
	shared := map[string]string{"order": "17"}
	job := commands.Enqueue{Queue: "mail", Tags: shared}
	workerotel.Inject(ctx, &job)
	untraced := commands.Enqueue{Queue: "mail"}
	workerotel.Inject(t.Context(), &untraced)
	if len(shared) != 1 || len(job.Tags) != 2 || untraced.Tags != nil {
		t.Errorf("tags: %q, %q, %q", shared, job.Tags, untraced.Tags)
	}
	again := maps.Clone(job.Tags)
	workerotel.Inject(ctx, &job)
	if !maps.Equal(job.Tags, again) {
		t.Errorf("injected twice: %q", job.Tags)
	}
	request.End()
	if _, err := l.Enqueue(ctx, "web", job, untraced); err != nil {
		t.Fatal(err)
	}
	var mux worker.Mux
	var within []trace.TraceID
	mux.HandleFunc("mail", func(ctx context.Context, _ projection.Job) ([]byte, error) {
		within = append(within, trace.SpanContextFromContext(ctx).TraceID())
		return nil, nil
	})
	w := &worker.Worker{Service: l.Service, Handler: &mux, Drain: true, SweepEvery: -1}
	if err := workerotel.Instrument(w, m.Options); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := request.SpanContext().TraceID()
	if len(within) != 2 || within[0] != id || within[1] == id || !within[1].IsValid() {
		t.Errorf("traces of the handlers: %v; of the request: %v", within, id)
	}
}

// A worker reports to the providers that the program has set; here, spans are printed when they end.
func ExampleInstrument() {
	folder, err := os.MkdirTemp("", "jobledger")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()
	store, err := ledger.Open(ctx, filepath.Join(folder, "jobs.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	service := &commands.Service{Store: store}
	if _, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail"}); err != nil {
		log.Fatal(err)
	}

	var mux worker.Mux
	mux.HandleFunc("mail", func(context.Context, projection.Job) ([]byte, error) { return nil, nil })
	w := &worker.Worker{Service: service, Handler: &mux, Drain: true}
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	if err := workerotel.Instrument(w, workerotel.Options{Tracers: tracers}); err != nil {
		log.Fatal(err)
	}
	if _, err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	for _, span := range spans.Ended() {
		fmt.Println(span.Name())
	}

	// Output: process mail
}
