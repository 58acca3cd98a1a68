package journal

import (
	"bytes"
	"context"
	"fmt"

	"jobledger/commands/internal/check"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Replace is the fact that j, which has its payload and salt, gets another payload of the same form; the zero
// Fact if it has this one, or payload is nil.
func Replace(j projection.Job, payload []byte) (f Fact, wrong *check.Problem) {
	switch {
	case payload == nil, j.Payload != nil && bytes.Equal(j.Payload, payload):
		return f, nil
	case j.Salt == nil:
		return f, &check.Problem{Field: "payload", Got: fmt.Sprintf("of job %s", j.ID),
			Allowed: "a payload that is in the ledger; that one is missing, and cannot be replaced"}
	}
	return Fact{Job: j, Content: payload, Body: &event.Replaced{
			PayloadSHA256: ledger.Digest(j.Salt, payload), PayloadBytes: int64(len(payload))}},
		check.Form(j.Form, payload)
}

// Salt returns the salt of j's digests.
func Salt(ctx context.Context, tx *ledger.Tx, j projection.Job) ([]byte, error) {
	salt, _, ok, err := tx.Body(ctx, j.N)
	if err == nil && !ok {
		err = fmt.Errorf("%w: job %s has no payload row", ledger.ErrDamaged, j.ID)
	}
	return salt, err
}
