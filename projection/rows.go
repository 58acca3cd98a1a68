package projection

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// selection is the columns that a query reads.
type selection struct {
	places []int  // in columns
	list   string // as the select list of a query on jobs j
}

func selectColumns(without ...string) (s selection) {
	var names []string
	for i, name := range table.Columns {
		if !slices.Contains(without, name) {
			s.places, names = append(s.places, i), append(names, "j."+name)
		}
	}
	s.list = strings.Join(names, ", ")
	return s
}

var (
	wholeRow = selectColumns()

	// queuedRow leaves out the columns that are null in a queued job, and the lane, which is in the WHERE
	// clause.
	queuedRow = selectColumns("lane", "worker", "lease_token", "claimed_at", "heartbeat_at", "lease_expires_at",
		"end_by", "finished_at")
)

// rare holds the fields that few jobs have, as the JSON of the column more.
type rare struct {
	Version     string            `json:"version,omitempty"`
	Requires    []string          `json:"requires,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	Progress    *float64          `json:"progress,omitempty"`
	Note        string            `json:"note,omitempty"`
	ErrorDetail string            `json:"error_detail,omitempty"`
	Erased      bool              `json:"erased,omitempty"`
	Limited     bool              `json:"limited,omitempty"`
	Schedule    string            `json:"schedule,omitempty"`
	Tick        string            `json:"tick,omitempty"` // as events have it
	Group       string            `json:"group,omitempty"`
	After       []string          `json:"after,omitempty"`
	Backoff     *backoff          `json:"backoff,omitempty"`
	UniqueWhile string            `json:"unique_while,omitempty"`
	Key         string            `json:"key,omitempty"`        // that it had; the column key is null then
	PayloadAt   int64             `json:"payload_at,omitempty"` // the pos of the body, where that is not n
	CannotEnd   string            `json:"cannot_end,omitempty"`
	Form        string            `json:"form,omitempty"`
}

// backoff is an event.Backoff in the column more, in microseconds.
type backoff struct {
	Min    int64   `json:"min"`
	Max    int64   `json:"max"`
	Factor float64 `json:"factor"`
}

func backoffOf(b event.Backoff) *backoff {
	if b == (event.Backoff{}) {
		return nil
	}
	return &backoff{b.Min.Microseconds(), b.Max.Microseconds(), b.Factor}
}

func (b *backoff) event() event.Backoff {
	if b == nil {
		return event.Backoff{}
	}
	return event.Backoff{Min: time.Duration(b.Min) * time.Microsecond,
		Max: time.Duration(b.Max) * time.Microsecond, Factor: b.Factor}
}

// empty treats an empty list like none, because a replay yields none.
func (m rare) empty() bool {
	return m.Version == "" && len(m.Requires) == 0 && len(m.Tags) == 0 && m.Progress == nil && m.Note == "" &&
		m.ErrorDetail == "" && !m.Erased && !m.Limited && m.Schedule == "" &&
		m.Group == "" && m.Backoff == nil && len(m.After) == 0 && m.UniqueWhile == "" && m.PayloadAt == 0 &&
		m.CannotEnd == "" && m.Form == ""
}

// RowOf returns j as a row. It adds names that are missing to the dictionary.
func RowOf(ctx context.Context, tx *ledger.Tx, j Job) (r table.Row, err error) {
	queue, err := tx.Name(ctx, j.Queue)
	if err != nil {
		return r, err
	}
	worker, err := tx.Worker(ctx, j.Worker)
	if err != nil {
		return r, err
	}
	more := rare{j.Version, j.Requires, j.Tags, j.Progress, j.Note, j.ErrorDetail, j.Erased, j.Limited,
		j.Schedule, tickText(j.Tick), j.Group, j.After, backoffOf(j.Backoff), j.UniqueWhile, "", j.PayloadAt,
		j.CannotEnd, j.Form}
	key := j.Key
	if j.KeyFree { // the unique index is over the column
		key, more.Key = "", j.Key
	}
	var moreText any
	if !more.empty() {
		text, err := json.Marshal(more)
		if err != nil {
			return r, err
		}
		moreText = string(text)
	}
	return table.Row{j.N, string(j.ID), j.Seq, int64(j.State), table.Text(LaneOf(j)), queue, int64(j.Priority),
		event.Micros(j.RunAt), table.Text(key), int64(j.Attempt), int64(j.Failures), int64(j.Snoozes),
		int64(j.MaxAttempts), table.Number(j.MaxRuntime.Microseconds()), table.Number(worker), table.Text(j.Token),
		table.Moment(j.ClaimedAt), table.Moment(j.HeartbeatAt), table.Moment(j.LeaseUntil), table.Moment(j.EndBy),
		table.Moment(j.FinishedAt), table.Text(j.ErrorCode), moreText}, nil
}

// scanJob reads a job from the columns of what, and further columns of the query into more.
func scanJob(ctx context.Context, tx *ledger.Tx, rows *ledger.Rows, what *selection, j *Job, more ...any) (
	err error) {
	var state, queue, runAt int64
	var key, token, code, rarely, lane sql.NullString
	var runtime, worker, claimed, heartbeat, lease, endBy, finished sql.NullInt64
	all := [table.Width]any{&j.N, &j.ID, &j.Seq, &state, &lane, &queue, &j.Priority, &runAt, &key, &j.Attempt,
		&j.Failures, &j.Snoozes, &j.MaxAttempts, &runtime, &worker, &token, &claimed, &heartbeat, &lease, &endBy,
		&finished, &code, &rarely}
	var into [table.Width + 2]any
	n := 0
	for ; n < len(what.places); n++ {
		into[n] = all[what.places[n]]
	}
	n += copy(into[n:], more)
	if err := rows.Scan(into[:n]...); err != nil {
		return err
	}
	if !j.ID.IsValid() { // it would name files
		return fmt.Errorf("%w: row %d of jobs: %.40q is not the id of a job", ledger.ErrDamaged, j.N, j.ID)
	}
	j.State, j.RunAt = event.State(state), event.FromMicros(runAt)
	j.Key, j.Token, j.ErrorCode = key.String, token.String, code.String
	j.MaxRuntime = time.Duration(runtime.Int64) * time.Microsecond
	j.ClaimedAt, j.HeartbeatAt = event.FromMicros(claimed.Int64), event.FromMicros(heartbeat.Int64)
	j.LeaseUntil = event.FromMicros(lease.Int64)
	j.EndBy, j.FinishedAt = event.FromMicros(endBy.Int64), event.FromMicros(finished.Int64)
	if j.Queue, err = tx.NameOf(ctx, queue); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	if j.Worker, err = tx.WorkerOf(ctx, worker.Int64); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	if rarely.Valid {
		var m rare
		if err := json.Unmarshal([]byte(rarely.String), &m); err != nil {
			return fmt.Errorf("%w: job %s: column more: %w", ledger.ErrDamaged, j.ID, err)
		}
		j.Version, j.Requires, j.Tags, j.Progress = m.Version, m.Requires, m.Tags, m.Progress
		j.Group, j.After, j.Backoff = m.Group, m.After, m.Backoff.event()
		if j.UniqueWhile, j.PayloadAt = m.UniqueWhile, m.PayloadAt; m.Key != "" {
			j.Key, j.KeyFree = m.Key, true
		}
		j.CannotEnd, j.Form = m.CannotEnd, m.Form
		j.Note, j.ErrorDetail, j.Erased, j.Limited = m.Note, m.ErrorDetail, m.Erased, m.Limited
		if j.Schedule = m.Schedule; m.Tick != "" {
			if j.Tick, err = time.Parse(time.RFC3339, m.Tick); err != nil {
				return fmt.Errorf("%w: job %s: column more: %w", ledger.ErrDamaged, j.ID, err)
			}
		}
	}
	return nil
}

// tickText is a tick as the column more has it.
func tickText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return event.FormatTime(t)
}
