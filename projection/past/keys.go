package past

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// Key is a row of past: the key of a job that has left the ledger.
type Key struct {
	Queue, Key string
	Job        event.JobID
	State      event.State // as it ended
	Digest     string      // of its payload, as its event has it
	Salt       []byte      // of the digest; nil: the payload was erased
}

// Matches reports whether payload is that of the job.
func (k Key) Matches(payload []byte) bool {
	return k.Salt != nil && ledger.Digest(k.Salt, payload) == k.Digest
}

var insertKey = ledger.NewSparseInsert("past",
	ledger.ColumnTypes{"key": ledger.TextColumn, "id": ledger.TextColumn, "digest": ledger.BytesColumn,
		"salt": ledger.BytesColumn},
	"queue", "key", "id", "state", "digest", "salt")

// KeepKeys stores the keys of the jobs ns that are theirs for ever, with what their payloads were. It returns
// how many that are.
func KeepKeys(ctx context.Context, tx *ledger.Tx, jobs map[int64]projection.Job, ns []int64) (kept int64,
	err error) {
	var with []int64
	for _, n := range ns {
		if j := jobs[n]; j.Key != "" && j.UniqueWhile == "" {
			with = append(with, n)
		}
	}
	if len(with) == 0 {
		return 0, nil
	}
	digests := make(map[int64]string, len(with))
	f := ledger.Filter{Jobs: with, Kinds: []event.Kind{event.KindEnqueued}}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return 0, err
		}
		digests[e.N] = e.Body.(*event.Enqueued).PayloadSHA256
	}
	for _, n := range with {
		j := jobs[n]
		salt, _, _, err := tx.Body(ctx, n)
		if err != nil {
			return 0, err
		}
		queue, err := tx.Name(ctx, j.Queue)
		if err != nil {
			return 0, err
		}
		digest, err := hex.DecodeString(digests[n])
		if err != nil {
			return 0, err
		}
		var salted any
		if salt != nil {
			salted = salt
		}
		if err := tx.Insert(insertKey, queue, j.Key, string(j.ID), int64(j.State), digest, salted); err != nil {
			return 0, err
		}
	}
	return int64(len(with)), nil
}

// ForgetSalt removes the salt of the digest of a key, so that its payload cannot be guessed at. It reports
// whether there was one.
func ForgetSalt(tx *ledger.Tx, queue, key string) (forgotten bool, err error) {
	n, err := tx.Exec(`UPDATE past SET salt = NULL
WHERE queue = (SELECT n FROM names WHERE name = ?) AND key = ? AND salt IS NOT NULL`, queue, key)
	return n > 0, err
}

const keyOf = `SELECT p.id, p.state, p.digest, p.salt FROM past p
WHERE p.queue = (SELECT n FROM names WHERE name = ?) AND p.key = ?`

// KeyOf returns the key of a job that has left the ledger; ok is false if none had it. It costs little where
// no job has left.
func KeyOf(ctx context.Context, tx *ledger.Tx, queue, key string) (k Key, ok bool, err error) {
	if h, err := projection.Horizon(ctx, tx); err != nil || h == 0 {
		return k, false, err
	}
	rows, err := tx.Query(ctx, keyOf, queue, key)
	var digest []byte
	ok, err = table.First(rows, err, &k.Job, &k.State, &digest, &k.Salt)
	k.Queue, k.Key, k.Digest = queue, key, hex.EncodeToString(digest)
	return k, ok, err
}

// FindKey returns the keys of jobs that have left the ledger which are key, in one of the queues; none: in
// any.
func FindKey(ctx context.Context, tx *ledger.Tx, queues []string, key string) (found []Key, err error) {
	if len(queues) == 0 {
		left, err := projection.HasLeft(ctx, tx)
		if err != nil || left.Jobs() == 0 {
			return nil, err
		}
		queues = slices.Sorted(maps.Keys(left.By))
		if left.Unnamed > 0 { // in queues that the table does not name
			if queues, err = queuesOf(ctx, tx, key); err != nil {
				return nil, err
			}
		}
	}
	for _, queue := range queues {
		k, ok, err := KeyOf(ctx, tx, queue, key)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, k)
		}
	}
	return found, nil
}

// queuesOf returns the queues in which jobs with key were. It reads all keys.
func queuesOf(ctx context.Context, tx *ledger.Tx, key string) (queues []string, err error) {
	return table.Column[string](tx.Query(ctx, `SELECT n.name FROM past p JOIN names n ON n.n = p.queue
WHERE p.key = ? ORDER BY 1`, key))
}
