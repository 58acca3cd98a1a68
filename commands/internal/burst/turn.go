package burst

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/claims"
)

// Turn is what a worker asks for at once: the ends of jobs, and a claim. Its last fields are the outcome.
type Turn struct {
	Actor  string
	Ends   []End
	Want   claims.Want
	Worker event.Worker
	Lease  time.Duration
	Tokens []string // fresh ones, for as many jobs as the turn takes at most
	// Claim decides about a queued job.
	Claim func(j projection.Job, token string, at time.Time) (journal.Fact, error)
	Now   func() time.Time // the clock; nil: the server's

	Planned bool             // a burst was tried last, so that the rest is its outcome, or not known
	Ended   []projection.Job // as Ends
	Claimed []projection.Job

	lane *claims.SoleLane
}

// End is a job that the worker has finished, as it was claimed, and the rule that decides about it.
type End struct {
	Job    projection.Job
	Decide func(at time.Time) (journal.Fact, error)
}

// A burst, and its answer before the commit, are no larger than what the system takes at once: a process that
// is frozen while it sends or receives must not keep the lock.
const (
	maxBytes  = 12 << 10
	maxTaken  = 128
	someBytes = 600 // of what each burst has
	endBytes  = 110 // of a job that ends, without data and results
	takeBytes = 34  // of a job to take
)

// Plan is a ledger.BurstPlan.
func (t *Turn) Plan(tx *ledger.Tx) *ledger.Burst {
	t.Planned = false
	if len(t.Tokens) > maxTaken || someBytes+len(t.Ends)*endBytes+len(t.Tokens)*takeBytes > maxBytes {
		return nil
	}
	t.lane = claims.FindSoleLane(tx, t.Want)
	if t.lane == nil || !tx.Knows(t.Worker, t.Actor, t.lane.Queue) {
		return nil
	}
	args, ok := t.arguments(context.Background(), tx)
	if !ok {
		return nil
	}
	t.Planned = true
	text := statement()
	if len(args) == len(parameters) {
		text = statementWithResults()
	}
	return &ledger.Burst{Within: []ledger.WarmupQuery{{Query: text, Args: args}},
		After: []ledger.WarmupQuery{{Query: bodies}}, Done: t.done}
}

// arguments are the values of parameters; ok is false if the statement would not do what the rules decide.
func (t *Turn) arguments(ctx context.Context, tx *ledger.Tx) (args []any, ok bool) {
	at := time.Now()
	var now *int64
	if t.Now != nil {
		at = t.Now()
		now = new(at.UnixMicro())
	}
	at = event.FromMicros(at.UnixMicro())
	actor, _ := tx.Name(ctx, t.Actor) // these are known
	worker, _ := tx.Worker(ctx, t.Worker)
	queue, _ := tx.Name(ctx, t.lane.Queue)
	before, after, ok := t.sample(ctx, tx, worker, at)
	if !ok {
		return nil, false
	}
	e, ok := t.endArguments(ctx, tx, at)
	if !ok {
		return nil, false
	}
	args = []any{t.lane.Covers, queue, t.lane.Text, int64(t.lane.Priority), t.lane.RunAt, t.lane.ID,
		int64(len(t.Tokens)), now, actor, worker, t.Lease.Microseconds(), t.Tokens, before, after,
		e.jobs, e.seqs, e.attempts, e.states, e.tokens, withoutNulls(e.data), withoutNulls(e.digests)}
	if results := withoutNulls(e.results); len(results) > 0 {
		args = append(args, results)
	}
	return args, true
}

// sample has the rules decide about a plain job of the lane, and compares what they would write with what the
// statement does. It returns the data of the event before and after the end of the lease; nil: the event has
// no such end.
func (t *Turn) sample(ctx context.Context, tx *ledger.Tx, worker int64, at time.Time) (before, after *string,
	ok bool) {
	const pos, seq, attempt = 1000, 7, 3
	j := projection.Job{N: 99, ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Seq: seq, State: event.Queued,
		Queue: t.lane.Queue, Priority: t.lane.Priority, RunAt: at, Attempt: attempt, Failures: 2, Snoozes: 1,
		MaxAttempts: 5, ErrorCode: "failed", Key: "key", Tags: map[string]string{"a": "b"}}
	f, err := t.Claim(j, t.Tokens[0], at)
	if err != nil || f.Content != nil || f.Salt != nil {
		return nil, nil, false
	}
	f.Actor = t.Actor
	e, claimed, err := f.Envelope(pos, at)
	if err != nil || projection.LaneOf(j) != t.lane.Text {
		return nil, nil, false
	}
	now, until := at.UnixMicro(), at.UnixMicro()+t.Lease.Microseconds()
	wanted := map[string]any{"seq": int64(seq + 1), "state": int64(event.ClaimedState), "lane": nil,
		"attempt": int64(attempt + 1), "worker": worker, "lease_token": t.Tokens[0], "claimed_at": now,
		"heartbeat_at": now, "lease_expires_at": until}
	changes, err := projection.Changes(ctx, tx, j, claimed)
	if err != nil || len(changes) != len(wanted) {
		return nil, nil, false
	}
	for _, c := range changes {
		if value, known := wanted[c.Column]; !known || value != c.Value {
			return nil, nil, false
		}
	}
	row, err := tx.EventRowOf(ctx, e)
	if err != nil || !t.isPlain(row, j, e, event.KindClaimed, event.ClaimedState) ||
		row.Ulid != any(t.Tokens[0]) || row.Attempt != any(int64(attempt+1)) || row.Digest != nil {
		return nil, nil, false
	}
	data, has := row.Data.(string)
	if !has {
		return nil, nil, true
	}
	front, rest, found := strings.Cut(data, strconv.FormatInt(until, 10))
	return &front, &rest, found
}

// isPlain reports whether an event has the columns that the statement gives every event.
func (t *Turn) isPlain(row ledger.EventRow, j projection.Job, e event.Event, k event.Kind,
	to event.State) bool {
	return e.Actor == t.Actor && e.Worker == t.Worker && e.N == j.N && e.Seq == j.Seq+1 && e.Kind() == k &&
		row.From == any(int64(j.State)) && row.To == any(int64(to))
}

// ending is the jobs that end, column by column.
type ending struct {
	jobs, seqs, attempts, states []int64
	tokens                       []string
	data                         []*string
	digests, results             [][]byte
}

// withoutNulls returns an empty list for one of nothing but null.
func withoutNulls[T *string | []byte](list []T) []T {
	for _, value := range list {
		if value != nil {
			return list
		}
	}
	return list[:0]
}

// endArguments has the rules decide about the jobs that end, and compares what they would write with what the
// statement does.
func (t *Turn) endArguments(ctx context.Context, tx *ledger.Tx, at time.Time) (to ending, ok bool) {
	n := len(t.Ends)
	to = ending{make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]string, n),
		make([]*string, n), make([][]byte, n), make([][]byte, n)}
	size := someBytes + n*endBytes + len(t.Tokens)*takeBytes
	for i, end := range t.Ends {
		j := end.Job
		f, err := end.Decide(at)
		if err != nil || f.Salt != nil || j.N == 0 || j.Worker != t.Worker || !endsPlainly(j) {
			return to, false
		}
		f.Actor = t.Actor
		e, after, err := f.Envelope(1, at)
		if err != nil {
			return to, false
		}
		changes, err := projection.Changes(ctx, tx, j, after)
		if err != nil || !endsAsStated(changes, j.Seq+1, at.UnixMicro()) {
			return to, false
		}
		row, err := tx.EventRowOf(ctx, e)
		if err != nil || !t.isPlain(row, j, e, event.KindSucceeded, event.SucceededState) || row.Ulid != nil ||
			row.Attempt != any(int64(j.Attempt)) {
			return to, false
		}
		to.jobs[i], to.seqs[i], to.attempts[i], to.states[i] = j.N, j.Seq, int64(j.Attempt), int64(j.State)
		to.tokens[i], to.results[i] = j.Token, f.Content
		to.digests[i], _ = row.Digest.([]byte)
		if data, has := row.Data.(string); has {
			to.data[i] = &data
			size += len(data)
		}
		size += len(f.Content)
	}
	return to, size <= maxBytes
}

// endsPlainly reports whether the end of j concerns nothing but its row.
func endsPlainly(j projection.Job) bool {
	return j.Group == "" && !j.Limited && j.UniqueWhile == "" && !j.Erased && j.Token != ""
}

// endsAsStated reports whether the end of a job changes what the statement does, and nothing else.
func endsAsStated(changes []projection.Change, seq, at int64) bool {
	must := 3
	for _, c := range changes {
		switch wanted := int64(event.SucceededState); c.Column {
		case "seq", "finished_at", "state":
			if c.Column == "seq" {
				wanted = seq
			} else if c.Column == "finished_at" {
				wanted = at
			}
			if c.Value != any(wanted) {
				return false
			}
			must--
		case "lease_token", "lease_expires_at", "end_by", "error_code":
			if c.Value != nil {
				return false
			}
		default:
			return false
		}
	}
	return must == 0
}

// done applies what was written; it agrees with what the rules decide for the jobs as they were found.
func (t *Turn) done(tx *ledger.Tx, answers []ledger.Answer) (base, tail int64, err error) {
	ctx := context.Background()
	rows := answers[0].Rows
	if len(rows) == 0 {
		return 0, 0, fmt.Errorf("%w: the statement of a burst has no row", ledger.ErrDamaged)
	}
	first := rows[0]
	checked := first[len(first)-checkedColumns:]
	base, _ = checked[1].(int64)
	micros, _ := checked[2].(int64)
	others := checked[3] == any(int64(1))
	now := event.FromMicros(micros)
	events, err := t.endAll(base, now)
	if err != nil {
		return 0, 0, err
	}
	var found []projection.Job
	if first[0] != nil {
		if found, err = t.readTaken(ctx, tx, answers); err != nil {
			return 0, 0, err
		}
	}
	t.Claimed = make([]projection.Job, len(found))
	for i, j := range found {
		f, err := t.Claim(j, t.Tokens[i], now)
		if err != nil {
			return 0, 0, fmt.Errorf("%w: job %s was taken: %w", ledger.ErrDamaged, j.ID, err)
		}
		f.Actor = t.Actor
		var e event.Event
		if e, t.Claimed[i], err = f.Envelope(base+1+int64(len(events)), now); err != nil {
			return 0, 0, fmt.Errorf("%w: job %s was taken: %w", ledger.ErrDamaged, j.ID, err)
		}
		events = append(events, e)
	}
	if ledger.CheckBursts {
		if err := t.check(ctx, tx, base, events); err != nil {
			return 0, 0, err
		}
	}
	t.lane.Took(found, len(t.Tokens), now, others)
	return base, base + int64(len(events)), nil
}

// EndedAt sets Ended where the burst is known to have ended the jobs at that time.
func (t *Turn) EndedAt(at time.Time) error {
	_, err := t.endAll(0, at)
	return err
}

// endAll has the rules end the jobs by the events after base.
func (t *Turn) endAll(base int64, at time.Time) (events []event.Event, err error) {
	t.Ended = make([]projection.Job, len(t.Ends))
	events = make([]event.Event, len(t.Ends), len(t.Ends)+len(t.Tokens))
	for i, end := range t.Ends {
		f, err := end.Decide(at)
		if err == nil {
			f.Actor = t.Actor
			events[i], t.Ended[i], err = f.Envelope(base+1+int64(i), at)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: job %s was ended: %w", ledger.ErrDamaged, end.Job.ID, err)
		}
	}
	return events, nil
}

// readTaken returns the jobs that were taken as they were before, in the order of their tokens.
func (t *Turn) readTaken(ctx context.Context, tx *ledger.Tx, answers []ledger.Answer) (
	[]projection.Job, error) {
	rows, err := tx.RowsOf(ctx, answers[0])
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	jobs := make([]projection.Job, len(answers[0].Rows))
	indexes := make(map[int64]int, len(jobs))
	for rows.Next() {
		var j projection.Job
		var ok, pos, now, others, o int64
		if err := projection.ScanTaken(ctx, tx, rows, &j, &ok, &pos, &now, &others, &o); err != nil {
			return nil, err
		}
		if o < 1 || o > int64(len(jobs)) || jobs[o-1].N != 0 {
			return nil, fmt.Errorf("%w: a burst took job %s as number %d", ledger.ErrDamaged, j.ID, o)
		}
		jobs[o-1] = j
		indexes[j.N] = int(o - 1)
	}
	err = rows.Err()
	for _, row := range answers[1].Rows {
		n, _ := row[0].(int64)
		i, ok := indexes[n]
		if !ok {
			continue
		}
		jobs[i].Salt, _ = row[1].([]byte)
		if jobs[i].Payload, _ = row[2].([]byte); len(jobs[i].Payload) == 0 && jobs[i].Salt != nil {
			jobs[i].Payload = []byte{} // as a search has it
		}
	}
	return jobs, err
}

// check compares what was written with what journal.Record would have.
func (t *Turn) check(ctx context.Context, tx *ledger.Tx, base int64, events []event.Event) error {
	if err := tx.CheckEvents(ctx, base, events); err != nil {
		return err
	}
	for _, jobs := range [][]projection.Job{t.Ended, t.Claimed} {
		for _, j := range jobs {
			if err := projection.CheckRow(ctx, tx, j); err != nil {
				return err
			}
		}
	}
	return nil
}
