package ledger

import (
	"context"

	"jobledger/ledger/internal/engine"
)

var insertBody = engine.NewInsert("bodies", engine.Types{"salt": engine.Bytes, "body": engine.Bytes},
	"pos", "salt", "body")

// PutBody stores a payload (pos of enqueued, with the job's salt), another payload in its place (pos of
// replaced, salt nil) or a result (pos of succeeded, salt nil).
func (tx *Tx) PutBody(pos int64, salt, body []byte) error {
	if body == nil {
		body = []byte{}
	}
	return tx.Put(insertBody, pos, salt, body)
}

// Body returns what PutBody stored at pos; ok is false if there is nothing, or not any more. For a whole copy
// it is the value of the original ledger.
func (tx *Tx) Body(ctx context.Context, pos int64) (salt, body []byte, ok bool, err error) {
	if of := tx.store.Of; of != nil {
		err = of.Read(ctx, func(tx *Tx) error {
			salt, body, ok, err = tx.Body(ctx, pos)
			return err
		})
		return salt, body, ok, err
	}
	ok, err = tx.one(ctx, []any{&salt, &body}, `SELECT salt, body FROM bodies WHERE pos = ?`, pos)
	if ok && body == nil {
		body = []byte{} // the driver gives nil for an empty one too
	}
	return salt, body, ok, err
}
