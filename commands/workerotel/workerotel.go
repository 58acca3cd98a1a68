package workerotel

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Name is the name under which spans and metrics are reported.
const Name = "jobledger"

// Options say where to report. The zero value reports to the providers that the program has set with
// otel.SetTracerProvider and otel.SetMeterProvider.
type Options struct {
	Tracers trace.TracerProvider // nil: the global one
	Meters  metric.MeterProvider // nil: the global one
}

// Instrument makes w report. It is called once, before Run or Finish, after Handler and Hooks are set: hooks
// that are set already are called too. An error is one of the meter.
func Instrument(w *worker.Worker, o Options) error {
	if o.Tracers == nil {
		o.Tracers = otel.GetTracerProvider()
	}
	if o.Meters == nil {
		o.Meters = otel.GetMeterProvider()
	}
	r := &reporter{tracer: o.Tracers.Tracer(Name), hooks: w.Hooks, open: make(map[event.JobID][]attempt)}
	if err := r.makeInstruments(o.Meters.Meter(Name)); err != nil {
		return err
	}
	w.Hooks.Started, w.Hooks.Ended, w.Hooks.Stuck = r.started, r.ended, r.stays
	if mux, ok := w.Handler.(*worker.Mux); ok {
		mux.Use(r.within)
	} else if w.Handler != nil {
		w.Handler = r.within(w.Handler)
	}
	return nil
}

// Inject writes the trace of ctx into the tags traceparent and tracestate of job, which has then two of its
// 32 tags less. Without a trace, or where the tag is there already, it changes nothing.
func Inject(ctx context.Context, job *commands.Enqueue) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if carrier["traceparent"] == "" || job.Tags["traceparent"] != "" {
		return
	}
	tags := maps.Clone(job.Tags) // which other jobs may share
	if tags == nil {
		tags = make(map[string]string)
	}
	for name, value := range carrier {
		if value != "" && len(value) <= commands.MaxTag {
			tags[name] = value
		}
	}
	job.Tags = tags
}

// reporter is what one worker reports to.
type reporter struct {
	tracer trace.Tracer
	hooks  worker.Hooks // that were set before

	jobs           metric.Int64Counter
	duration, wait metric.Float64Histogram
	running, stuck metric.Int64UpDownCounter

	mu   sync.Mutex
	open map[event.JobID][]attempt
}

// attempt is one that has not ended.
type attempt struct {
	number int
	span   trace.Span
	stuck  bool // its handler was asked to stop, and did not
}

func (r *reporter) makeInstruments(m metric.Meter) (err error) {
	if r.jobs, err = m.Int64Counter("jobledger.worker.jobs",
		metric.WithDescription("Attempts that have ended."), metric.WithUnit("{attempt}")); err != nil {
		return err
	}
	if r.duration, err = m.Float64Histogram("jobledger.worker.duration",
		metric.WithDescription("How long the work of an attempt ran."), metric.WithUnit("s")); err != nil {
		return err
	}
	if r.wait, err = m.Float64Histogram("jobledger.worker.wait",
		metric.WithDescription("How long a job had been ready when it was claimed."),
		metric.WithUnit("s")); err != nil {
		return err
	}
	if r.stuck, err = m.Int64UpDownCounter("jobledger.worker.stuck",
		metric.WithDescription("Handlers that run on though they were asked to stop."),
		metric.WithUnit("{handler}")); err != nil {
		return err
	}
	r.running, err = m.Int64UpDownCounter("jobledger.worker.running",
		metric.WithDescription("Attempts that run now."), metric.WithUnit("{attempt}"))
	return err
}

func queueOf(job projection.Job) attribute.KeyValue {
	return attribute.String("messaging.destination.name", job.Queue)
}

// started is the hook: the handler is called after it has returned.
func (r *reporter) started(job projection.Job, waited time.Duration) {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(job.Tags))
	attributes := []attribute.KeyValue{
		attribute.String("messaging.system", Name),
		attribute.String("messaging.operation.type", "process"),
		queueOf(job),
		attribute.String("messaging.message.id", string(job.ID)),
		attribute.Int("jobledger.attempt", job.Attempt),
		attribute.Float64("jobledger.wait", waited.Seconds()),
	}
	if job.Key != "" {
		attributes = append(attributes, attribute.String("jobledger.key", job.Key))
	}
	_, span := r.tracer.Start(ctx, "process "+job.Queue, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attributes...))
	r.mu.Lock()
	r.open[job.ID] = append(r.open[job.ID], attempt{number: job.Attempt, span: span})
	r.mu.Unlock()
	set := metric.WithAttributes(queueOf(job))
	r.wait.Record(ctx, waited.Seconds(), set)
	r.running.Add(ctx, 1, set)
	if r.hooks.Started != nil {
		r.hooks.Started(job, waited)
	}
}

// within is middleware: the handler's context has the span of its attempt.
func (r *reporter) within(h worker.Handler) worker.Handler {
	return worker.HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
		r.mu.Lock()
		i := r.find(job)
		var span trace.Span
		if i >= 0 {
			span = r.open[job.ID][i].span
		}
		r.mu.Unlock()
		if span == nil { // another worker has the same Mux
			return h.Work(ctx, job)
		}
		result, err := h.Work(trace.ContextWithSpan(ctx, span), job)
		if err != nil && worker.IsFailure(err) {
			span.RecordError(err)
		}
		return result, err
	})
}

// find returns the index of the attempt in open: that of this number, or the oldest; −1 if there is none.
func (r *reporter) find(job projection.Job) int {
	list := r.open[job.ID]
	i := slices.IndexFunc(list, func(a attempt) bool { return a.number == job.Attempt })
	if i < 0 && len(list) > 0 {
		return 0
	}
	return i
}

// stays is the hook: a handler was asked to stop, and did not.
func (r *reporter) stays(job projection.Job, cause error, since time.Duration, running int) worker.Slot {
	r.mu.Lock()
	if i := r.find(job); i >= 0 && !r.open[job.ID][i].stuck {
		r.open[job.ID][i].stuck = true
		r.stuck.Add(context.Background(), 1, metric.WithAttributes(queueOf(job)))
	}
	r.mu.Unlock()
	if r.hooks.Stuck != nil {
		return r.hooks.Stuck(job, cause, since, running)
	}
	return worker.KeepSlot
}

// ended is the hook: the ledger has recorded the end.
func (r *reporter) ended(job projection.Job, how worker.Ending, took time.Duration) {
	attributes := []attribute.KeyValue{queueOf(job), attribute.String("jobledger.outcome", string(how))}
	if how == worker.Failed {
		attributes = append(attributes, attribute.String("error.type", job.ErrorCode))
	}
	r.mu.Lock()
	i := r.find(job)
	var span trace.Span
	if i >= 0 {
		if span = r.open[job.ID][i].span; r.open[job.ID][i].stuck {
			r.stuck.Add(context.Background(), -1, metric.WithAttributes(queueOf(job)))
		}
		if r.open[job.ID] = slices.Delete(r.open[job.ID], i, i+1); len(r.open[job.ID]) == 0 {
			delete(r.open, job.ID)
		}
	}
	r.mu.Unlock()
	ctx := context.Background()
	if span != nil {
		span.SetAttributes(append(attributes, attribute.String("jobledger.state", job.State.String()))...)
		switch how {
		case worker.Failed:
			span.SetStatus(codes.Error, job.ErrorCode)
		case worker.Lost:
			span.SetStatus(codes.Error, "the claim was lost")
		}
		ctx = trace.ContextWithSpan(ctx, span) // for exemplars
	}
	set := metric.WithAttributes(attributes...)
	r.jobs.Add(ctx, 1, set)
	r.duration.Record(ctx, took.Seconds(), set)
	r.running.Add(ctx, -1, metric.WithAttributes(queueOf(job)))
	if span != nil {
		span.End()
	}
	if r.hooks.Ended != nil {
		r.hooks.Ended(job, how, took)
	}
}
