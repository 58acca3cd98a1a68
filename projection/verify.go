package projection

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
)

// Finding is one thing that Verify found wrong.
type Finding struct {
	Code   string       `json:"code"`            // V01…, one per check
	Pos    int64        `json:"pos,omitempty"`   // the event, where one is to blame
	Job    ledger.JobID `json:"job,omitempty"`   // the job, where one is concerned
	Field  string       `json:"field,omitempty"` // the column that differs
	Detail string       `json:"detail"`
}

// The checks of Verify.
const (
	FindStructure  = "V01" // the database's own integrity check
	FindGuard      = "V02" // a table, index, trigger or view is missing or altered
	FindGap        = "V03" // pos is not dense
	FindClock      = "V04" // at decreases along pos
	FindDamaged    = "V05" // an event cannot be read
	FindIllegal    = "V06" // an event cannot follow on what was before: seq, transition, owner, token, attempt
	FindBody       = "V07" // a payload or result is not what its event says, or is missing without having been erased or left out of an import
	FindDiffers    = "V08" // a row of jobs differs from the fold of the events
	FindMissing    = "V09" // a job has no row
	FindExtra      = "V10" // a row has no job
	FindQueue      = "V11" // a row of queues differs from the fold of the events
	FindEarly      = "V12" // a claim before run_at, or from a paused queue
	FindReclaim    = "V13" // a reclaim before the lease's end, or with facts that are not the job's
	FindTooOften   = "V14" // a failure beyond max_attempts was to be retried
	maxFindings    = 1000  // then Verify stops looking
	progressEvents = 10_000
)

// Verified says what was checked.
type Verified struct {
	Events   int64
	Jobs     int64
	Findings []Finding
	Stopped  bool // an event could not be folded: what comes after it was not checked
}

// Verify folds every event and compares what they add up to with the tables, row by row. progress, if not nil, is
// called now and then with the events done and their total. An error means that the check could not be carried
// out; what it found wrong are Findings.
func Verify(ctx context.Context, tx *ledger.Tx, progress func(done, total int64)) (Verified, error) {
	v := verifier{tx: tx, fold: newFold()}
	err := v.run(ctx, progress)
	for _, f := range v.lost {
		v.find(f)
	}
	return v.Verified, err
}

func (v *verifier) run(ctx context.Context, progress func(done, total int64)) error {
	v.fold.done, v.fold.load = v.jobEnded, v.forgotten
	if err := v.structure(ctx); err != nil {
		return err
	}
	if err := v.events(ctx, progress); err != nil || v.Stopped {
		return err
	}
	return v.rows(ctx)
}

type verifier struct {
	Verified
	tx   *ledger.Tx
	fold *fold
	last ledger.Event
	next func() (ledger.StoredBody, error, bool)
	body ledger.StoredBody // the one not yet passed
	more bool

	lost      []Finding // bodies that are missing without having been erased: up to maxFindings of them
	lostCount int64     // all of them
}

func (v *verifier) find(f Finding) {
	if len(v.Findings) < maxFindings {
		v.Findings = append(v.Findings, f)
	}
}

func (v *verifier) structure(ctx context.Context) error {
	problems, err := v.tx.Integrity(ctx)
	if err != nil {
		return err
	}
	for _, p := range problems {
		v.find(Finding{Code: FindStructure, Detail: p})
	}
	if problems, err = v.tx.Guards(ctx); err != nil {
		return err
	}
	slices.Sort(problems)
	for _, p := range problems {
		v.find(Finding{Code: FindGuard, Detail: p})
	}
	return nil
}

func (v *verifier) events(ctx context.Context, progress func(done, total int64)) error {
	total, err := v.tx.Tail(ctx)
	if err != nil {
		return err
	}
	next, stop := iter.Pull2(v.tx.Bodies(ctx))
	defer stop()
	v.next = next
	if err := v.nextBody(); err != nil {
		return err
	}
	for e, err := range v.tx.Events(ctx, ledger.Filter{}) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			v.find(Finding{Code: FindDamaged, Pos: v.Events + 1, Detail: err.Error()})
			v.Stopped = true
			return nil
		}
		if e.Pos != v.last.Pos+1 {
			v.find(Finding{Code: FindGap, Pos: e.Pos, Detail: fmt.Sprintf("the event before it is %d", v.last.Pos)})
		}
		if e.At.Before(v.last.At) {
			v.find(Finding{Code: FindClock, Pos: e.Pos, Job: e.Job, Detail: fmt.Sprintf("at %s, after %s", ledger.FormatTime(e.At), ledger.FormatTime(v.last.At))})
		}
		v.last = e
		before := v.fold.open[e.N]
		v.rules(before, e)
		after, err := v.fold.add(e)
		if err != nil {
			v.find(Finding{Code: FindIllegal, Pos: e.Pos, Job: e.Job, Detail: err.Error()})
			v.Stopped = true
			return nil
		}
		if err := v.bodies(ctx, e, after); err != nil {
			return err
		}
		if v.Events++; progress != nil && (v.Events%progressEvents == 0 || v.Events == total) {
			progress(v.Events, total)
		}
	}
	v.Jobs = v.fold.jobs
	if err := v.end(ctx); err != nil {
		return err
	}
	return v.unclaimed(math.MaxInt64)
}

// end notices events that were cut off at the end: SQLite remembers the highest pos that there ever was.
func (v *verifier) end(ctx context.Context) error {
	rows, err := v.tx.Query(ctx, `SELECT seq FROM sqlite_sequence WHERE name = 'events'`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var highest int64
	if rows.Next() {
		if err := rows.Scan(&highest); err != nil {
			return err
		}
	}
	if highest != v.last.Pos {
		v.find(Finding{Code: FindGap, Pos: v.last.Pos, Detail: fmt.Sprintf("this is the last event, but there have been %d", highest)})
	}
	return rows.Err()
}

// rules checks what Evolve does not judge, because it means nothing for the state.
func (v *verifier) rules(j Job, e ledger.Event) {
	switch b := e.Body.(type) {
	case *ledger.Claimed:
		if j.RunAt.After(e.At) {
			v.find(Finding{Code: FindEarly, Pos: e.Pos, Job: e.Job, Detail: "claimed before its run_at " + ledger.FormatTime(j.RunAt)})
		}
		if v.fold.queues[j.Queue].Paused {
			v.find(Finding{Code: FindEarly, Pos: e.Pos, Job: e.Job, Detail: fmt.Sprintf("claimed while the queue %s was paused", j.Queue)})
		}
	case *ledger.Reclaimed:
		if !b.LeaseUntil.Equal(j.LeaseUntil) || !b.LastHeartbeat.Equal(j.HeartbeatAt) || e.At.Before(j.LeaseUntil) {
			v.find(Finding{Code: FindReclaim, Pos: e.Pos, Job: e.Job, Detail: fmt.Sprintf("reclaimed at %s with lease end %s and last heartbeat %s, but the lease ran to %s and the last heartbeat was %s",
				ledger.FormatTime(e.At), ledger.FormatTime(b.LeaseUntil), ledger.FormatTime(b.LastHeartbeat), ledger.FormatTime(j.LeaseUntil), ledger.FormatTime(j.HeartbeatAt))})
		}
		v.bounded(j, e, b.RetryAt)
	case *ledger.Failed:
		v.bounded(j, e, b.RetryAt)
	case *ledger.Imported:
		if v.lostCount <= b.MissingBodies { // its file had these events without their bodies; some may have been erased since
			v.lost, v.lostCount = nil, 0
		}
	}
}

func (v *verifier) lose(f Finding) {
	if v.lostCount++; len(v.lost) < maxFindings {
		v.lost = append(v.lost, f)
	}
}

func (v *verifier) bounded(j Job, e ledger.Event, retryAt time.Time) {
	if !retryAt.IsZero() && j.Failures+1 >= j.MaxAttempts {
		v.find(Finding{Code: FindTooOften, Pos: e.Pos, Job: e.Job, Detail: fmt.Sprintf("failure %d of %d was to be retried", j.Failures+1, j.MaxAttempts)})
	}
}

func (v *verifier) nextBody() error {
	b, err, ok := v.next()
	v.body, v.more = b, ok
	return err
}

// bodies walks the stored bodies beside the events: both are in the order of pos.
func (v *verifier) bodies(ctx context.Context, e ledger.Event, j Job) error {
	if err := v.unclaimed(e.Pos); err != nil {
		return err
	}
	var digest string
	var size int64
	switch b := e.Body.(type) {
	case *ledger.Enqueued:
		digest, size = b.PayloadSHA256, b.PayloadBytes
	case *ledger.Succeeded:
		digest, size = b.ResultSHA256, b.ResultBytes
	}
	stored := v.more && v.body.Pos == e.Pos
	if !stored && digest == "" {
		return nil
	}
	if !stored {
		erased, err := v.erasedLater(ctx, e)
		if err == nil && !erased {
			v.lose(Finding{Code: FindBody, Pos: e.Pos, Job: e.Job, Detail: "its body is missing and was not erased"})
		}
		return err
	}
	salt := v.body.Salt
	if e.Kind() == ledger.KindSucceeded {
		var err error
		if salt, _, _, err = v.tx.Body(ctx, e.N); err != nil {
			return err
		}
	}
	if int64(len(v.body.Body)) != size || ledger.Digest(salt, v.body.Body) != digest {
		v.find(Finding{Code: FindBody, Pos: e.Pos, Job: e.Job, Detail: fmt.Sprintf("its body of %d bytes is not the one of %d bytes that the event names", len(v.body.Body), size)})
	}
	return v.nextBody()
}

// unclaimed finds the stored bodies before pos that no event has asked for.
func (v *verifier) unclaimed(before int64) error {
	for v.more && v.body.Pos < before {
		v.find(Finding{Code: FindBody, Pos: v.body.Pos, Detail: "a body is stored for an event that has none"})
		if err := v.nextBody(); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) erasedLater(ctx context.Context, e ledger.Event) (bool, error) {
	for _, err := range v.tx.Events(ctx, ledger.Filter{Job: e.N, Kinds: []ledger.Kind{ledger.KindErased}, After: e.Pos, Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}

// jobEnded compares a job that has just ended with its row. Equal, and with no later event of its own, it can be
// forgotten; else it stays until the end.
func (v *verifier) jobEnded(j Job) (forget bool, err error) {
	ctx := context.Background()
	stored, ok, err := rawRow(ctx, v.tx, j.N)
	if err != nil || !ok {
		return false, err
	}
	folded, err := toRow(ctx, v.tx, j)
	return err == nil && stored == folded, err
}

func (v *verifier) forgotten(n int64) (Job, error) {
	j, _, err := one(context.Background(), v.tx, `SELECT `+columnList+` FROM jobs j WHERE j.n = ?`, n)
	return j, err
}

// rows compares what is left of the fold with the tables, and looks for rows that no event made.
func (v *verifier) rows(ctx context.Context) error {
	for _, n := range sortedKeys(v.fold.open) {
		j := v.fold.open[n]
		stored, ok, err := rawRow(ctx, v.tx, n)
		if err != nil {
			return err
		}
		if !ok {
			v.find(Finding{Code: FindMissing, Job: j.ID, Detail: "the job has no row in the table jobs"})
			continue
		}
		folded, err := toRow(ctx, v.tx, j)
		if err != nil {
			return err
		}
		for i := range folded {
			if stored[i] != folded[i] {
				v.find(Finding{Code: FindDiffers, Job: j.ID, Field: columns[i],
					Detail: fmt.Sprintf("the table says %s, the events say %s", shown(columns[i], stored[i]), shown(columns[i], folded[i]))})
			}
		}
	}
	extra, err := extraRows(ctx, v.tx)
	if err != nil {
		return err
	}
	for _, n := range extra {
		v.find(Finding{Code: FindExtra, Detail: fmt.Sprintf("row %d of the table jobs belongs to no enqueued event", n)})
	}
	differing, err := differingQueues(ctx, v.tx, v.fold.queues)
	if err != nil {
		return err
	}
	for _, d := range differing {
		v.find(Finding{Code: FindQueue, Field: d.field, Detail: fmt.Sprintf("queue %s: %s", d.queue, d.detail)})
	}
	return nil
}

// shown is a column's value for people.
func shown(column string, v any) string {
	n, isNumber := v.(int64)
	switch {
	case v == nil:
		return "null"
	case isNumber && column == "state":
		return ledger.State(n).String()
	case isNumber && (strings.HasSuffix(column, "_at") || column == "end_by" || column == "since"):
		return ledger.FormatTime(ledger.FromMicros(n))
	case isNumber:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.200q", fmt.Sprint(v))
}

func sortedKeys[V any](m map[int64]V) []int64 {
	keys := make([]int64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// rawRow reads the row of job n as it is stored, column by column.
func rawRow(ctx context.Context, tx *ledger.Tx, n int64) (r row, ok bool, err error) {
	rows, err := tx.Query(ctx, `SELECT `+columnList+` FROM jobs j WHERE j.n = ?`, n)
	if err != nil {
		return r, false, err
	}
	defer rows.Close()
	if ok = rows.Next(); ok {
		into := make([]any, width)
		for i := range into {
			into[i] = &r[i]
		}
		err = rows.Scan(into...)
	}
	if err == nil {
		err = rows.Err()
	}
	return r, ok, err
}

func extraRows(ctx context.Context, tx *ledger.Tx) (extra []int64, err error) {
	rows, err := tx.Query(ctx, `SELECT n FROM jobs j WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.pos = j.n AND e.kind = 1)`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		extra = append(extra, n)
	}
	return extra, rows.Err()
}

// queueFields are the columns of the table queues behind its first.
var queueFields = [...]string{"paused", "since", "actor", "reason"}

type queueRow [len(queueFields)]any

// differingQueue is a row of queues that is not what the events say.
type differingQueue struct {
	number        int64 // the row's
	queue         string
	field, detail string
}

// differingQueues compares the rows of queues as they are stored with folded, by number.
func differingQueues(ctx context.Context, tx *ledger.Tx, folded map[string]Queue) (found []differingQueue, err error) {
	want, names := make(map[int64]queueRow), make(map[int64]string)
	for name, q := range folded {
		n, err := tx.Name(ctx, name)
		if err != nil {
			return nil, err
		}
		actor, err := tx.Name(ctx, q.Actor)
		if err != nil {
			return nil, err
		}
		paused := int64(0)
		if q.Paused {
			paused = 1
		}
		names[n] = name
		want[n] = queueRow{paused, ledger.Micros(q.Since), actor, text(q.Reason)}
	}
	rows, err := tx.Query(ctx, `SELECT queue, paused, since, actor, reason FROM queues`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	stored := make(map[int64]queueRow)
	for rows.Next() {
		var n int64
		var r queueRow
		if err := rows.Scan(&n, &r[0], &r[1], &r[2], &r[3]); err != nil {
			return nil, err
		}
		stored[n] = r
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, n := range sortedKeys(want) {
		d := differingQueue{number: n, queue: names[n]}
		r, ok := stored[n]
		if !ok {
			d.detail = "it has no row in the table queues"
			found = append(found, d)
		}
		for i, field := range queueFields {
			if ok && r[i] != want[n][i] {
				d.field, d.detail = field, fmt.Sprintf("the table says %s, the events say %s", shown(field, r[i]), shown(field, want[n][i]))
				found = append(found, d)
			}
		}
		delete(stored, n)
	}
	for _, n := range sortedKeys(stored) {
		d := differingQueue{number: n, queue: fmt.Sprint("number ", n), detail: "its row in the table queues belongs to no event"}
		if name, err := tx.NameOf(ctx, n); err == nil {
			d.queue = name
		}
		found = append(found, d)
	}
	return found, nil
}
