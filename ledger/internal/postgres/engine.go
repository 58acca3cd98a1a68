package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/postgres/notify"
)

// Engine is a ledger in a schema of a PostgreSQL database.
type Engine struct {
	address  address
	info     engine.Info
	writer   *engine.Session // nil: not connected
	lockKey  int64           // of the ledger's advisory lock
	newest   int             // version of a schema that this program knows
	notifier *notify.Notifier
	pooled   bool                      // a pooler is between this process and the server
	crowded  atomic.Pointer[time.Time] // when the pooler had no session to spare; nil: not yet

	// PollInterval is how often a listener polls the tail. It may be set before the first Listen.
	PollInterval time.Duration
	// AnswerTime is how long the server may take to answer a statement of a writer before the connection counts
	// as lost. It may be set before the first Begin.
	AnswerTime time.Duration
}

// answerTime is the default of AnswerTime: longer than any statement of a writer takes, without those that
// put a schema right. lockAnswerTime is how long after its own time limit the server may say that there was
// no lock.
const (
	answerTime     = time.Minute
	lockAnswerTime = 10 * time.Second
)

// frozenWriter is the server's setting of how long a process may hold the write lock without being heard
// from. An address may give it.
const (
	frozenWriter        = "idle_in_transaction_session_timeout"
	frozenWriterDefault = "5s"
)

// A process that cannot reach the server tries again, after pauses that grow.
const (
	firstReconnect = 20 * time.Millisecond
	lastReconnect  = time.Second
)

// serverClock is the server's clock, in microseconds since 1970.
const serverClock = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

const selectHead = `SELECT ` + serverClock + `, coalesce(t.pos, 0), coalesce(t.at, 0),
    coalesce(current_setting('` + markSetting + `', true), '')
FROM (VALUES (1)) AS one LEFT JOIN (SELECT pos, at FROM events ORDER BY pos DESC LIMIT 1) AS t ON true`

// Info implements engine.Engine.
func (p *Engine) Info() engine.Info { return p.info }

// Begin connects if necessary. It tries again after a lost connection, since nothing has been written yet.
func (p *Engine) Begin(ctx context.Context, o engine.BeginOptions) (*engine.Session, engine.Head, error) {
	failpoint.Hit("begin")
	pause, queries := firstReconnect, o.WarmupQueries
	for {
		at, err := p.tryBegin(ctx, o.LockWait-time.Since(o.Since), queries)
		if len(queries) > 0 && errors.Is(err, engine.ErrDamaged) { // the function that asks this will report it
			queries = nil
			at, err = p.tryBegin(ctx, o.LockWait-time.Since(o.Since), nil)
		}
		if err == nil {
			failpoint.Hit("begun")
			return p.writer, at, nil
		}
		if ctx.Err() != nil {
			return nil, at, context.Cause(ctx)
		}
		if !errors.Is(err, engine.ErrIO) && !errors.Is(err, engine.ErrNoSession) {
			return nil, at, err
		}
		if time.Since(o.Since) > o.LockWait {
			return nil, at, fmt.Errorf("%w: %s could not be reached within %s: %w",
				engine.ErrBusy, p.address, o.LockWait, err)
		}
		select {
		case <-ctx.Done():
			return nil, at, context.Cause(ctx)
		case <-time.After(pause):
		}
		pause, queries = min(2*pause, lastReconnect), nil
	}
}

func (p *Engine) tryBegin(
	ctx context.Context, wait time.Duration, queries []engine.WarmupQuery,
) (at engine.Head, err error) {
	if p.writer == nil {
		if p.writer, err = p.address.connect(ctx, forWriting, max(wait, time.Millisecond)); err != nil {
			return at, err
		}
		queries = nil
	}
	connOf(p.writer).answerTime = p.AnswerTime
	_ = connOf(p.writer).drainPipeline() // a pending NOTIFY; its error is harmless, a dead connection fails next
	if at, err = p.beginLocked(ctx, wait, queries, false); err != nil {
		_ = p.Rollback()
	}
	if p.writer != nil && p.info.Altered != nil && isTableMissing(err) { // it is to be repaired
		if at, err = p.beginLocked(ctx, wait, queries, true); err != nil {
			_ = p.Rollback()
		}
	}
	return at, err
}

// Commit implements engine.Engine.
func (p *Engine) Commit(topics engine.Topic) error {
	notification, args := p.notifier.WithCommit(topics)
	err := connOf(p.writer).commit(notification, args...)
	if err == nil {
		failpoint.Hit("committed")
	}
	return err
}

// Rollback closes the connection if the transaction cannot be ended.
func (p *Engine) Rollback() error {
	if p.writer == nil {
		return nil
	}
	c := connOf(p.writer)
	c.lockTimeout = unknownTimeout
	if c.rollback() != nil {
		_ = p.writer.Close()
		p.writer = nil
	}
	return nil
}

// A pooler whose sessions are all taken has none for a reader for spareWait, and is not asked again for
// crowdedFor: the writer's session does then.
const (
	spareWait  = 2 * time.Second
	crowdedFor = 10 * time.Second
)

// OpenReader implements engine.Engine.
func (p *Engine) OpenReader(ctx context.Context) (*engine.Session, error) {
	if !p.pooled {
		return p.address.connect(ctx, forReading, SessionWait)
	}
	if since := p.crowded.Load(); since != nil && time.Since(*since) < crowdedFor {
		return nil, fmt.Errorf("%w: the pooler had none %s ago", engine.ErrNoSession,
			time.Since(*since).Round(time.Second))
	}
	return p.connectSpare(ctx, spareWait)
}

// connectSpare opens a connection that this process can do without.
func (p *Engine) connectSpare(ctx context.Context, within time.Duration) (*engine.Session, error) {
	start := time.Now()
	s, err := p.address.connect(ctx, forReading, within)
	if errors.Is(err, engine.ErrBusy) {
		p.crowded.Store(&start)
	}
	return s, err
}

// WriterSession implements engine.Lender.
func (p *Engine) WriterSession() *engine.Session { return p.writer }

// BeginSnapshot implements engine.Engine.
func (p *Engine) BeginSnapshot(ctx context.Context, s *engine.Session) (engine.Head, error) {
	c := connOf(s)
	if c.writes {
		_ = c.drainPipeline() // as Begin does
		c.expectAnswer(c.answerTime)
	}
	batch := &pgx.Batch{}
	batch.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	return c.head(ctx, batch, nil, 1, noResult)
}

// Notify implements engine.Engine.
func (p *Engine) Notify(topics engine.Topic) { p.notifier.Notify(topics) }

// Listen implements engine.Engine.
func (p *Engine) Listen(ctx context.Context, wake func(engine.Topic)) {
	p.notifier.Listen(ctx, p.PollInterval, wake)
}

// notifyServer is where the notifications of a ledger go through.
func (p address) notifyServer() notify.Server {
	connect := func(ctx context.Context) (*notify.Conn, error) {
		s, err := p.connect(ctx, forReading, SessionWait)
		if err != nil {
			return nil, err
		}
		c := connOf(s)
		tail := func(ctx context.Context) (tail int64, inbox bool, err error) {
			queries := []engine.WarmupQuery{{Query: `SELECT count(*) FROM (SELECT FROM inbox LIMIT 1) AS rows`}}
			at, err := c.head(ctx, &pgx.Batch{}, queries, 0, noResult)
			return at.Tail, err == nil && at.Prefetched[0].Rows[0][0] == int64(1), err
		}
		return &notify.Conn{Conn: c.conn, Tail: tail, HangUp: func() { _ = s.Close() }}, nil
	}
	return notify.Server{Channel: "jobledger_" + p.schema, Listens: p.listen, Connect: connect}
}

// CheckReplaced returns nil: a connection stays with its database.
func (p *Engine) CheckReplaced() error { return nil }

// Diagnose returns err: the server's errors carry their reason.
func (p *Engine) Diagnose(err error) error { return err }

// Close implements engine.Engine.
func (p *Engine) Close() error {
	p.notifier.Close()
	if p.writer != nil {
		return p.writer.Close()
	}
	return nil
}
