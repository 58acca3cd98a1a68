package worker

import (
	"context"
	"log/slog"

	"jobledger/projection"
)

// logOf returns the logger of w's Log, with the worker's name in every line.
func (w *Worker) logOf() *slog.Logger { return w.Log.With("worker", w.Process.Name) }

// about returns the attributes with which every line about a job begins.
func about(j projection.Job) []any { return []any{"job", j.ID, "queue", j.Queue} }

// logged returns the attributes of a line about the work on j: the job, its attempt, more, and the exit code
// or the signal of the command, if there was one.
func (t *task) logged(j projection.Job, more ...any) []any {
	attributes := append(about(j), "attempt", t.current().Attempt)
	attributes = append(attributes, more...)
	if t.exitCode != nil {
		attributes = append(attributes, "exit_code", *t.exitCode)
	}
	if t.signal != "" {
		attributes = append(attributes, "signal", t.signal)
	}
	return attributes
}

// debug logs a line about the work on j if such lines are wanted; of each job there are some.
func (l *loop) debug(message string, t *task, j *projection.Job, more ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(message, t.logged(*j, more...)...)
	}
}
