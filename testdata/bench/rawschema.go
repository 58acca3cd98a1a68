package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// rawSchemaEngine is what bare SQL reaches with the tables of jobledger: grouped as raw-grouped, and it
// writes the rows that jobledger writes. The lane of a job is taken as it stands in the file.
func rawSchemaEngine() Engine {
	e := jobledgerEngine()
	e.Name, e.Module = "raw-schema", ""
	e.Settings = "the tables and rows of jobledger, written as raw-grouped writes its own"
	e.Phases = []string{}
	e.Open = func(ctx context.Context, f File) (Queue, error) {
		if f.New { // a job and a worker give it the names of the queue and of the actor
			q, err := openJobledger(ctx, f)
			if err != nil {
				return nil, err
			}
			if err := errors.Join(q.Enqueue(ctx, newPayload(0)), q.Close()); err != nil {
				return nil, err
			}
		}
		b, err := openBare(ctx, f, "recursive_triggers(1)", "temp_store(memory)")
		if err != nil {
			return nil, err
		}
		q := &rawSchema{bare: b, lanes: max(1, f.Lanes)}
		if err := q.prepare(f.New); err != nil {
			return nil, errors.Join(err, b.Close())
		}
		return q, nil
	}
	return e
}

type rawSchema struct {
	*bare
	lanes int      // of the jobs that EnqueueBatch writes
	texts []string // of the lanes, the highest priority first
	pos   int64    // of the last event
	queue int64    // its number
	actor int64
}

// prepare reads what the one job left behind, removes its row, and adds a worker.
func (q *rawSchema) prepare(fresh bool) error {
	last, err := q.query(`SELECT max(pos), max(actor), (SELECT n FROM names WHERE name = 'bench') FROM events`)
	if err != nil {
		return err
	}
	q.pos, q.actor, q.queue = last[0][0].(int64), last[0][1].(int64), last[0][2].(int64)
	lane, err := q.query(`SELECT lane FROM jobs WHERE lane IS NOT NULL LIMIT 1`)
	if err != nil {
		return err
	}
	for i := range q.lanes {
		if len(lane) > 0 { // a lane is a text with the queue in front
			q.texts = append(q.texts, fmt.Sprintf("%s%03d", lane[0][0], i))
		}
	}
	if q.lanes == 1 && len(lane) > 0 {
		q.texts[0] = lane[0][0].(string)
	}
	if !fresh {
		return nil
	}
	return q.write(func() error {
		if err := q.exec(`DELETE FROM jobs`); err != nil {
			return err
		}
		return q.exec(`INSERT INTO workers VALUES (1, 'bench', ?, 'localhost', 1, '')`, ulid.Make().String())
	})
}

func (q *rawSchema) Enqueue(ctx context.Context, payload []byte) error {
	return q.EnqueueBatch(ctx, [][]byte{payload})
}

func (q *rawSchema) EnqueueBatch(_ context.Context, payloads [][]byte) error {
	return q.write(func() error {
		now := time.Now().UnixMicro()
		var jobs, events, bodies []any
		for i, p := range payloads {
			q.pos++
			id, salt := ulid.Make().String(), make([]byte, 16)
			_, _ = rand.Read(salt)
			digest := sha256.Sum256(append(salt[:16:16], p...))
			jobs = append(jobs, q.pos, id, 1, 1, q.texts[i%len(q.texts)], q.queue, i%len(q.texts), now, 0, 0, 0, 5)
			events = append(events, q.pos, q.pos, 1, 1, now, q.actor, id, 1, digest[:],
				fmt.Sprintf(`{"queue":"bench","payload_bytes":%d}`, len(p)))
			bodies = append(bodies, q.pos, salt, p)
		}
		if err := q.insert(`jobs (n, id, seq, state, lane, queue, priority, run_at, attempt, failures, snoozes,
			max_attempts)`, 12, jobs); err != nil {
			return err
		}
		if err := q.insert(`events (pos, job, seq, kind, at, actor, ulid, to_state, digest, data)`, 10,
			events); err != nil {
			return err
		}
		return q.insert("bodies (pos, salt, body)", 3, bodies)
	})
}

// bareUpdate is the text that sets the columns of n jobs by their number and seq, which come first.
func bareUpdate(n int, columns ...string) string {
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", len(columns)+2), ",") + ")"
	set := make([]string, len(columns))
	for i, name := range columns {
		set[i] = fmt.Sprintf("%s = v.column%d", name, i+3)
	}
	return "UPDATE jobs SET " + strings.Join(set, ", ") + " FROM (VALUES " +
		strings.TrimSuffix(strings.Repeat(row+",", n), ",") +
		") AS v WHERE jobs.n = v.column1 AND jobs.seq = v.column2"
}

func (q *rawSchema) Drain(ctx context.Context, workers int, t *Tally) error {
	first := 0 // lanes before it are empty
	return q.drain(ctx, workers, t, func(group []*turn) error {
		now := time.Now().UnixMicro()
		var ended, ends []any
		for _, one := range group {
			if j := one.ended; j != nil {
				q.pos++
				ended = append(ended, j.n, j.seq, j.seq+1, 4, nil, nil, now)
				ends = append(ends, q.pos, j.n, j.seq+1, 4, now, q.actor, 1, 1, 2, 4)
			}
		}
		err := q.inParts(7, ended, func(n int) string {
			return bareUpdate(n, "seq", "state", "lease_token", "lease_expires_at", "finished_at")
		})
		if err != nil {
			return err
		}
		var taken [][]driver.Value
		for at := first; at < len(q.texts) && len(taken) < len(group); at++ {
			more, err := q.query(`SELECT j.n, j.seq, b.salt, b.body, j.id, j.run_at, j.priority FROM jobs j
				JOIN bodies b ON b.pos = j.n WHERE j.lane = ? AND j.run_at <= ? ORDER BY j.run_at, j.id LIMIT ?`,
				q.texts[at], now, len(group)-len(taken))
			if err != nil {
				return err
			}
			taken = append(taken, more...)
			if len(taken) < len(group) {
				first = at + 1
			}
		}
		var claimed, claims []any
		for i, one := range group {
			if one.next = (bareJob{}); i >= len(taken) {
				continue
			}
			q.pos++
			n, seq := taken[i][0].(int64), taken[i][1].(int64)
			one.next = bareJob{n: n, seq: seq + 1, payload: taken[i][3].([]byte)}
			token := ulid.Make().String()
			claimed = append(claimed, n, seq, seq+1, 2, nil, 1, 1, token, now, now, now+60_000_000)
			claims = append(claims, q.pos, n, seq+1, 2, now, q.actor, 1, token, 1, 1, 2)
		}
		err = q.inParts(11, claimed, func(n int) string {
			return bareUpdate(n, "seq", "state", "lane", "attempt", "worker", "lease_token", "claimed_at",
				"heartbeat_at", "lease_expires_at")
		})
		return cmp.Or(err,
			q.insert(`events (pos, job, seq, kind, at, actor, worker, attempt, from_state, to_state)`, 10, ends),
			q.insert(`events (pos, job, seq, kind, at, actor, worker, ulid, attempt, from_state, to_state)`, 11,
				claims))
	})
}
