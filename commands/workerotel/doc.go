// Package workerotel reports the work of a worker.Worker to OpenTelemetry: a span for each attempt, and
// metrics. It is a Go module of its own, so that jobledger itself does not depend on OpenTelemetry.
//
//	w := &worker.Worker{Service: service, Handler: &mux, Slots: 4}
//	if err := workerotel.Instrument(w, workerotel.Options{}); err != nil {
//		return err
//	}
//	stats, err := w.Run(ctx)
//
// If a job is enqueued, [Inject] writes the trace of the context into its tags. The attempts of the job
// are then spans of that trace, even if the job came through an outbox:
//
//	job := commands.Enqueue{Queue: "mail", Payload: body}
//	workerotel.Inject(ctx, &job)
//
// # Spans
//
// A span named "process QUEUE" lasts from the claim until the ledger has recorded its end. It says what the
// ledger says: its attribute jobledger.outcome is succeeded, failed, released, cancelled or lost, and it is
// an error for failed and lost only. The handler's context has the span.
//
// # Metrics
//
//   - jobledger.worker.jobs counts ends, by queue, outcome and, of failures, error.type
//   - jobledger.worker.duration is how long the work ran, in seconds, likewise
//   - jobledger.worker.wait is how long a job had been ready when it was claimed, in seconds, by queue
//   - jobledger.worker.running is how many jobs run now, by queue
//   - jobledger.worker.stuck is how many handlers run on though they were asked to stop, by queue
//
// Held by TestInstrumentSaysWhatTheLedgerSays and TestInjectCarriesTheTrace.
package workerotel
