package commands

import (
	"context"
	"crypto/rand"

	"github.com/oklog/ulid/v2"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Service carries out commands on a ledger. It is safe for concurrent use. Without a Store, its calls return
// ErrNoStore.
type Service struct {
	Store *ledger.Store
	NewID func() string // ULIDs for jobs and tokens; nil: random, and increasing within a millisecond

	// Archived returns the state in which a job ended that has left the ledger, or ErrNoJob, such as the
	// function that archive.Ends returns; nil: jobs do not wait for any that has left. It is called for the jobs
	// that new jobs wait for.
	Archived func(ctx context.Context, id event.JobID) (event.State, error)

	// Staging declares that nothing else uses the ledger, and that it is removed when an Import or a Replay
	// fails. These then write in many transactions, so that the -wal file stays small, and without guards until
	// the end.
	Staging bool

	// If is asked within the transaction of a change of a queue, or of what sets schedules, before it. With an
	// error nothing is changed, and the call returns that. nil: nothing is asked.
	If func(ctx context.Context, tx *ledger.Tx) error

	// NewSalt fills its argument with unpredictable bytes; nil: from crypto/rand. Only tests set it.
	NewSalt func([]byte)
}

func (s *Service) write(ctx context.Context, fn func(*ledger.Tx) error) error {
	if s.Store == nil {
		return ErrNoStore
	}
	return s.Store.Write(ctx, fn)
}

func (s *Service) read(ctx context.Context, fn func(*ledger.Tx) error) error {
	if s.Store == nil {
		return ErrNoStore
	}
	return s.Store.Read(ctx, fn)
}

func (s *Service) peek(ctx context.Context, fn func(*ledger.Tx) error) error {
	if s.Store == nil {
		return ErrNoStore
	}
	return s.Store.Peek(ctx, fn)
}

func (s *Service) newID() string {
	if s.NewID != nil {
		return s.NewID()
	}
	return ulid.Make().String()
}

func (s *Service) fillSalts(salts []byte) {
	if s.NewSalt != nil {
		s.NewSalt(salts)
		return
	}
	_, _ = rand.Read(salts) // never fails
}
